"""The ids that no text encodes to."""

from __future__ import annotations

from dataclasses import dataclass

# Every vocabulary that heedful makes begins with these three.
PAD = 0
START = 1
END = 2


@dataclass(frozen=True)
class SpecialTokens:
    """Where a vocabulary has its special tokens; imported ones have them elsewhere.

    For an encoder, `start` is the class token and `end` the separator.
    """

    pad: int = PAD
    start: int = START
    end: int = END
    mask: int | None = None
    unknown: int | None = None

    @property
    def ids(self) -> frozenset[int]:
        """All of them but the unknown token, which stands for text."""
        return frozenset(each for each in (self.pad, self.start, self.end, self.mask) if each is not None)


OWN_TOKENS = SpecialTokens()
