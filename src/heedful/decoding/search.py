"""Decoding in one call, for any model that has `prefill`, `new_state` and `step`."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.run import decode
from heedful.decoding.seam import DecodingModel

# Sentences that are decoded side by side.
SENTENCES = 64


def greedy(model: DecodingModel, sources: Sequence[Sequence[int]], max_length: int | None = None) -> list[list[int]]:
    """The target of each source, made of the likeliest token at each step, without the end token."""
    found = _decode(model, sources, DecodingOptions(beam=1, max_length=max_length))
    return [hypotheses[0].tokens for hypotheses in found]


def beam(
    model: DecodingModel, sources: Sequence[Sequence[int]], options: DecodingOptions | None = None
) -> list[list[Hypothesis]]:
    """The `options.nbest` best targets of each source, best first, by a search with `options.beam`."""
    return _decode(model, sources, options or DecodingOptions())


def _decode(model: DecodingModel, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
    requests = [Request(index, source) for index, source in enumerate(sources)]
    results = sorted(decode(model, requests, options, SENTENCES), key=lambda result: result.index)
    return [result.hypotheses for result in results]
