"""The settings of decoding, checked where they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from heedful.config import require_whole, shown
from heedful.errors import UserError


class DefaultBeam(int):
    """A beam that nobody asked for: sampling ignores it, but refuses any other."""


DEFAULT_BEAM = DefaultBeam(5)
DEFAULT_LENGTH_PENALTY = 0.6

# Hypotheses of a sentence that are under way at a time: even studies of wide beams stop at 1000.
MOST_HYPOTHESES = 1024
# Tokens of a target, which torch's caches make room for all at once: a long chapter of a novel has as many.
MOST_TOKENS = 2**16
# Texts that are computed at a time: more would be no faster.
LARGEST_BATCH = 2**16
# No vocabulary is larger: the ids of tokens have 32 bits.
LARGEST_VOCABULARY = 2**31 - 1
# Beyond this, what is already there is as good as ruled out.
LARGEST_REPETITION_PENALTY = 100.0
# Beyond this, the longest wins whatever it says.
LARGEST_LENGTH_PENALTY = 10.0


def length_penalty(length: int, alpha: float) -> float:
    """The divisor ((5 + |Y|) / 6) ** alpha of Wu et al. (2016); |Y| counts every scored token, END too."""
    return math.pow((5.0 + length) / 6.0, alpha)


# Below this, only the likeliest token is left, and smaller numbers become 0 on the way to a device.
LOWEST_TOP_P = 1e-6
# Outside these, sampling gives the likeliest token or any token, and below them quotients leave the range of fp32.
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.001, 100


@dataclass(frozen=True)
class SamplingOptions:
    """Draw tokens at random: from all of them, from the `top_k` likeliest, or from the likeliest that make up
    `top_p`.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _require(
            is_number(self.temperature) and LOWEST_TEMPERATURE <= self.temperature <= HIGHEST_TEMPERATURE,
            "temperature",
            self.temperature,
            f"a number from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}",
        )
        if self.top_k is not None:
            require_whole(self.top_k, "top_k", 1, LARGEST_VOCABULARY)
        _require(
            self.top_p is None or (is_number(self.top_p) and LOWEST_TOP_P <= self.top_p <= 1.0),
            "top_p",
            self.top_p,
            f"a number from {LOWEST_TOP_P:f} to 1, or none",
        )
        require_whole(self.seed, "seed", 0, 2**64 - 1)


@dataclass(frozen=True)
class DecodingOptions:
    """How to search. Lengths count target tokens without END; a `beam` of 1 is greedy.

    The beam is 5 by default; sampling has none, hence 1. Because of `min_length` no text gets an empty translation.
    Without `max_length`, a translation may have `max_extra` more tokens than its source (or its forced prefix, if that
    is longer). With `sampling`, `nbest` is the number of independent samples. `repetition_penalty` multiplies the
    log-probability of a token that has already occurred (Keskar et al., 2019), and `no_repeat_ngram` rules out a token
    that would complete a sequence of that many tokens that has already occurred (0 rules out nothing). For a model that
    continues a text, that text counts too.
    """

    beam: int = DEFAULT_BEAM
    nbest: int = 1
    length_penalty: float = DEFAULT_LENGTH_PENALTY
    min_length: int = 1
    max_length: int | None = None
    max_extra: int = 50
    sampling: SamplingOptions | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        require_whole(self.nbest, "nbest", 1, MOST_HYPOTHESES)
        if self.sampling is not None and isinstance(self.beam, DefaultBeam):
            object.__setattr__(self, "beam", 1)
        require_whole(self.beam, "beam", 1, MOST_HYPOTHESES)
        _require(
            is_number(self.length_penalty) and 0.0 <= self.length_penalty <= LARGEST_LENGTH_PENALTY,
            "length_penalty",
            self.length_penalty,
            f"a number from 0 to {LARGEST_LENGTH_PENALTY:g} (the paper uses 0.6, 0 turns it off)",
        )
        for name in ("min_length", "max_extra", "no_repeat_ngram", "max_length"):
            if name != "max_length" or self.max_length is not None:
                require_whole(getattr(self, name), name, 0, MOST_TOKENS)
        _require(
            is_number(self.repetition_penalty) and 1.0 <= self.repetition_penalty <= LARGEST_REPETITION_PENALTY,
            "repetition_penalty",
            self.repetition_penalty,
            f"a number from 1, which turns it off, to {LARGEST_REPETITION_PENALTY:g}",
        )
        self._check_together()

    def _check_together(self) -> None:
        if self.sampling is None and self.nbest > self.rows:
            raise UserError(beyond_beam(self.nbest, self.beam))
        if self.sampling is not None and self.beam != 1:
            raise UserError(
                f"beam is {self.beam}, but sampling draws hypotheses one by one: "
                "leave beam at 1, and set nbest for several samples"
            )
        if self.max_length == 0 and self.min_length == 1:  # which nobody asked for
            object.__setattr__(self, "min_length", 0)
        if self.max_length is not None and self.min_length > self.max_length:
            raise UserError(
                f"min_length is {self.min_length}, more than max_length, which is {self.max_length}: "
                "lower min_length or raise max_length"
            )

    @property
    def looks_back(self) -> bool:
        """Whether the choice of a token depends on those already there."""
        return self.repetition_penalty != 1.0 or self.no_repeat_ngram > 0

    @property
    def rows(self) -> int:
        """How many hypotheses of a sentence are under way at a time."""
        return self.beam if self.sampling is None else self.nbest

    def longest_target(self, length: int) -> int:
        """The most tokens for a source (or a prefix, if that is longer) of `length` tokens."""
        if self.max_length is not None:
            return self.max_length
        return max(length + self.max_extra, self.min_length)


def search_options(options: DecodingOptions | None, beam: int | None, nbest: int | None) -> DecodingOptions:
    """The options of a translation: as given, or from a beam and a number of hypotheses; each is set in one place."""
    if options is None:
        return DecodingOptions(DEFAULT_BEAM if beam is None else beam, 1 if nbest is None else nbest)
    if not isinstance(options, DecodingOptions):
        raise UserError(f"options is {shown(options)}: expected heedful.DecodingOptions(...)")
    for name, value in (("beam", beam), ("nbest", nbest)):
        if value is not None:
            raise UserError(
                f"{name} is given twice: as {value!r}, and in the options, where it is {getattr(options, name)!r}; "
                f"set it in the options alone"
            )
    if options.max_length == 0:
        raise UserError("max_length is 0, but a translation has at least one subword: give a larger one, or none")
    return options


def is_number(value: object) -> bool:
    """Whether a value is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(right: bool, name: str, value: object, allowed: str) -> None:
    if not right:
        raise UserError(f"{name} is {shown(value)}, but must be {allowed}")


def beyond_beam(nbest: int, beam: int) -> str:
    """The message for more hypotheses than a beam holds."""
    return (
        f"nbest is {nbest}, but a beam of {beam} holds at most {beam} hypothes{'is' if beam == 1 else 'es'}: "
        f"lower nbest, or set beam to at least {nbest}"
    )
