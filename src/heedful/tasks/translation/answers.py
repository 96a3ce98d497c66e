"""What a translation model is given, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.tasks.remarks import TextWarning

# Pairs of the numbers of a source word and a target word.
Alignment = list[tuple[int, int]]


@dataclass(frozen=True)
class TranslatedPiece:
    """A piece of a text, its translation, and the white space before that."""

    source: str
    text: str
    before: str


@dataclass(frozen=True)
class Translation:
    """A translated text; `nbest` holds the best hypotheses, this one first.

    `score` is the sum of `token_scores` (log-probabilities of `tokens` and of the end) divided by the length penalty;
    `alignment` holds pairs (source word, target word), if you asked for it. If the text was translated in pieces,
    `pieces` holds them, `score` is the sum of their log-probabilities, and `token_scores` ends with those of all their
    ends.
    """

    text: str
    score: float = 0.0
    tokens: list[str] = field(default_factory=list)
    token_scores: list[float] = field(default_factory=list)
    alignment: Alignment | None = None
    nbest: list[Translation] = field(default_factory=list)
    pieces: list[TranslatedPiece] = field(default_factory=list)

    def __repr__(self) -> str:
        others = f", nbest of {len(self.nbest)}" if len(self.nbest) > 1 else ""
        pieces = f", {len(self.pieces)} pieces" if self.pieces else ""
        return f"Translation({self.text!r}, score={self.score:.4f}, {len(self.tokens)} tokens{pieces}{others})"


@dataclass(frozen=True)
class Score:
    """The log-probability of a target text given its source, in total, by token, and over the length penalty."""

    log_probability: float
    token_scores: list[float]
    score: float

    def __repr__(self) -> str:
        return f"Score({self.score:.4f}, log_probability={self.log_probability:.4f}, {len(self.token_scores)} tokens)"


class LongTextWarning(TextWarning):
    """The text was too long for the model, or for what it was trained on."""


class UnevenPairWarning(LongTextWarning):
    """The source is translated in pieces, but the given target has another number of sentences."""


def pharaoh(alignment: Alignment) -> str:
    """The alignment as `0-0 1-2 ...`: source word, hyphen, target word."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
