"""How a request is prepared before any engine sees it: what is prefilled, and how long the target may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from heedful.config import require_whole
from heedful.decoding.hypothesis import Request
from heedful.decoding.options import LARGEST_BATCH, DecodingOptions
from heedful.errors import UserError
from heedful.text.special_tokens import SpecialTokens


class FramingModel(Protocol):
    """What planning needs from a model."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""

    def longest_target(self, source_length: int) -> int | None:
        """The most target tokens that the model can take after such a source, if there is a limit."""

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """What is to be prefilled for a source, and the token that the first step reads."""


@dataclass(frozen=True)
class Planned:
    """A request, what of it is to be prefilled, what its first step reads, and the most tokens that it may get."""

    request: Request
    prefilled: list[int]
    first: int
    longest: int


def check_options(model: FramingModel, options: DecodingOptions, max_sentences: int) -> None:
    """Raise a UserError if a model cannot be decoded with these options."""
    require_whole(max_sentences, "max_sentences", 1, LARGEST_BATCH)
    if options.looks_back and getattr(model, "shortlist", None):
        raise UserError("rules against repetition look at all subwords: load the model without its shortlist")
    limit = model.longest_target(0)
    if limit is not None and options.min_length > limit:
        raise UserError(
            f"min_length is {options.min_length}, but the model takes {limit} target tokens at most: lower it"
        )


def plan(request: Request, model: FramingModel, options: DecodingOptions) -> Planned:
    """Check a request and frame it."""
    request.check(model.special_tokens)
    prefix = len(request.prefix)
    if prefix and getattr(model, "shortlist", None):
        raise UserError("a prefix may need any subword: load the model without its shortlist")
    prefilled, first = model.frame(request.source)
    longest = longest_target(model, options, len(prefilled), max(len(request.source), prefix), request.max_length)
    if prefix > longest:
        raise UserError(
            f"the forced prefix has {prefix} tokens, more than the {longest} that the target may have; "
            "shorten the prefix, or raise max_length as far as the model allows"
        )
    return Planned(request, prefilled, first, longest)


def longest_target(
    model: FramingModel, options: DecodingOptions, source_length: int, length: int, own: int | None = None
) -> int:
    """The most tokens of a target whose source, or forced prefix, has `length` tokens."""
    longest = options.longest_target(length)
    if own is not None:
        longest = own if options.max_length is None else min(own, options.max_length)
    limit = model.longest_target(source_length)
    return longest if limit is None else min(longest, limit)
