"""The ids that no text encodes to."""

from __future__ import annotations

from dataclasses import dataclass, fields

from heedful.errors import UserError

# Every vocabulary that heedful makes begins with these three.
PAD = 0
START = 1
END = 2


@dataclass(frozen=True)
class SpecialTokens:
    """Where a vocabulary has its special tokens; imported ones have them elsewhere.

    For an encoder, `start` is the class token and `end` the separator. `text_start` is what a language model reads
    before a text, if it is not the end of the one before.
    """

    pad: int = PAD
    start: int = START
    end: int = END
    mask: int | None = None
    unknown: int | None = None
    text_start: int | None = None

    @property
    def ids(self) -> frozenset[int]:
        """All of them but the unknown token, which stands for text."""
        return frozenset(each for each in (self.pad, self.start, self.end, self.mask) if each is not None)

    @property
    def before_text(self) -> int:
        """What a language model reads before a text."""
        return self.end if self.text_start is None else self.text_start

    def check(self, vocabulary_size: int, where: str) -> None:
        """Raise a UserError that names the first id that the vocabulary does not have."""
        for each in fields(self):
            token = getattr(self, each.name)
            if token is not None and not 0 <= token < vocabulary_size:
                raise UserError(
                    f"{where}.{each.name} is {token}, but the vocabulary has {vocabulary_size} tokens: "
                    f"it must be from 0 to {vocabulary_size - 1}"
                )


OWN_TOKENS = SpecialTokens()
