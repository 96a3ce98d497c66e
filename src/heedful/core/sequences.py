"""Whole texts at once by the engine: scores and alignments of given targets, vectors and answers of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, c_float, c_int32
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.interface import check, check_ids, engine
from heedful.core.model import CoreModel

_INTS, _FLOATS = POINTER(c_int32), POINTER(c_float)


def score_targets(
    model: CoreModel, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, align: bool = False
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Per pair the log-probabilities of its target and of the end after it, and, with `align`, the weights T S.

    These are those of cross-attention, a mean over heads and layers. A model without an encoder has no end to score.
    """
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
    model: CoreModel,
    rows: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]] | None,
    *,
    pooling: int,
    head: bool,
    width: int,
) -> list[NDArray[np.float32]]:
    """What an encoder makes of each text: T `width`, or a vector of that width with a pooling (1 or 2)."""
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


def _ints(values: Sequence[int]) -> NDArray[np.int32]:
    check_ids(values)
    return np.asarray(values, np.int32)


def _split(array: NDArray[np.float32], sizes: Sequence[int]) -> list[NDArray[np.float32]]:
    return np.split(array, np.cumsum(sizes)[:-1]) if sizes else []
