"""Whole texts at once by the engine: scores and alignments of given targets, an encoder's vectors and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_float, c_int32
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.interface import check, check_ids, engine
from heedful.core.model import CoreModel

_INTS, _FLOATS = POINTER(c_int32), POINTER(c_float)
# About how many tokens a call computes, or one longer text: a call cannot be interrupted.
TOKENS_AT_A_TIME = 2048

Ids = Sequence[int]
Arrays = list[NDArray[np.float32]]


def score_targets(
    model: CoreModel, sources: Sequence[Ids], targets: Sequence[Ids], *, align: bool = False
) -> tuple[Arrays, Arrays]:
    """For each pair, the log-probabilities of its target and of the end after it, and, with `align`, weights T S.

    The weights are those of cross-attention, a mean over heads and layers. Without an encoder there is no end to score.
    """
    scores: Arrays = []
    weights: Arrays = []
    for group in _groups([len(source) + len(target) for source, target in zip(sources, targets, strict=True)]):
        found = _score_targets(model, sources[group], targets[group], align)
        scores += found[0]
        weights += found[1]
    return scores, weights


def _score_targets(
    model: CoreModel, sources: Sequence[Ids], targets: Sequence[Ids], align: bool
) -> tuple[Arrays, Arrays]:
    ends = model.family == "encoder_decoder"
    source_lengths, target_lengths = ([len(each) for each in side] for side in (sources, targets))
    rows = [length + ends for length in target_lengths]
    scores = np.empty(sum(rows), np.float32)
    sizes = [row * length for row, length in zip(rows, source_lengths, strict=True)]
    weights = np.zeros(sum(sizes) if align else 0, np.float32)
    arrays = [_ints(list(chain.from_iterable(sources))), _ints(source_lengths)]
    arrays += [_ints(list(chain.from_iterable(targets))), _ints(target_lengths)]
    check(
        engine().heedful_score(
            model.handle,
            model.threads,
            len(sources),
            *(each.ctypes.data_as(_INTS) for each in arrays),
            scores.ctypes.data_as(_FLOATS),
            weights.ctypes.data if align else None,
        )
    )
    if not align:
        return _split(scores, rows), []
    stack = model.config.decoder
    weights /= stack.num_layers * stack.attention.num_heads
    shapes = zip(_split(weights, sizes), rows, source_lengths, strict=True)
    return _split(scores, rows), [each.reshape(row, length) for each, row, length in shapes]


def encode(
    model: CoreModel, rows: Sequence[Ids], segments: Sequence[Ids] | None, *, pooling: int, head: bool, width: int
) -> Arrays:
    """An encoder's output for each text: T `width`, or, with a pooling (1 or 2), a vector of that width."""
    return [
        each
        for group in _groups([len(row) for row in rows])
        for each in _encode(model, rows[group], None if segments is None else segments[group], pooling, head, width)
    ]


def _encode(
    model: CoreModel, rows: Sequence[Ids], segments: Sequence[Ids] | None, pooling: int, head: bool, width: int
) -> Arrays:
    lengths = [len(each) for each in rows]
    counts = [1] * len(rows) if pooling else lengths
    output = np.empty((sum(counts), width), np.float32)
    ids, sizes = _ints(list(chain.from_iterable(rows))), _ints(lengths)
    kinds: Any = None if segments is None else _ints(list(chain.from_iterable(segments)))
    check(
        engine().heedful_encode(
            model.handle,
            model.threads,
            len(rows),
            ids.ctypes.data_as(_INTS),
            None if kinds is None else kinds.ctypes.data,
            sizes.ctypes.data_as(_INTS),
            pooling,
            head,
            output.ctypes.data,
        )
    )
    return _split(output, counts)


def _groups(lengths: Sequence[int]) -> Iterator[slice]:
    """Texts of these lengths in groups, one for each call."""
    first = tokens = 0
    for last, length in enumerate(lengths, 1):
        tokens += length
        if tokens >= TOKENS_AT_A_TIME or last == len(lengths):
            yield slice(first, last)
            first, tokens = last, 0


def _ints(values: Sequence[int]) -> NDArray[np.int32]:
    check_ids(values)
    return np.asarray(values, np.int32)


def _split(array: NDArray[np.float32], sizes: Sequence[int]) -> Arrays:
    return np.split(array, np.cumsum(sizes)[:-1]) if sizes else []
