"""What goes into decoding and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.errors import UserError
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class Request:
    """One sentence to decode: its number, its source ids (without END), and a forced start of its target.

    For a model without an encoder the source is the text to be continued. `max_length` is the request's own limit,
    where the options set none. `draw` is the seed and the number that its random numbers come from, by default the
    options' seed and its index.
    """

    index: int
    source: Sequence[int]
    prefix: Sequence[int] = ()
    max_length: int | None = None
    draw: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.index < 1 << 63:
            raise UserError(f"a request's index is {self.index}, but must be 0 or more, and below 2**63")

    def check(self, special: SpecialTokens) -> None:
        """Raise a UserError if it holds a special token, which no text has."""
        for name, ids in (("source", self.source), ("prefix", self.prefix)):
            found = special.ids.intersection(ids)
            if found:
                raise UserError(f"request {self.index}: its {name} holds a special token, id {min(found)}; remove it")


@dataclass(frozen=True)
class Hypothesis:
    """A decoded target.

    `tokens` holds the forced prefix, but not END. `token_scores` are the model's log-probabilities, after a repetition
    penalty if there is one, END's last if the hypothesis is finished. `score` is their sum divided by the length
    penalty for this many tokens.
    """

    tokens: list[int]
    token_scores: list[float]
    score: float
    finished: bool


@dataclass(frozen=True)
class Decoded:
    """The hypotheses for the request of that index: finished ones, best first, then any unfinished ones.

    Samples come in the order of their numbers, so that those of several requests can be put together by these.
    """

    index: int
    hypotheses: list[Hypothesis]
