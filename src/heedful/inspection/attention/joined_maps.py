"""The maps of a text that a model reads in pieces, put together from the maps of the pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.attention.maps import AttentionMap, AttentionMaps, Positions
from heedful.inspection.attention.predictions import Prediction


def join_maps(parts: Sequence[AttentionMaps], along: dict[str, str]) -> AttentionMaps:
    """Maps with a block for each piece on the diagonal: no position attends to another piece.

    A sequence lies along itself, or along the one named in `along`, whose places it shares.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    maps = [
        AttentionMap(
            each.kind, each.layer, each.queries, each.keys, _diagonal([part.maps[n].weights for part in parts])
        )
        for n, each in enumerate(first.maps)
    ]
    sequences = {name: _joined(parts, name, along.get(name, name)) for name in first.sequences}
    return AttentionMaps(first.model, first.family, sequences, maps, _predictions(parts))


def _diagonal(blocks: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    heads = blocks[0].shape[0]
    ends_T, ends_S = (np.cumsum([block.shape[axis] for block in blocks]) for axis in (1, 2))
    joined_HTS = np.zeros((heads, ends_T[-1], ends_S[-1]), np.float32)
    for block, end_T, end_S in zip(blocks, ends_T, ends_S, strict=True):
        joined_HTS[:, end_T - block.shape[1] : end_T, end_S - block.shape[2] : end_S] = block
    return joined_HTS


def _joined(parts: Sequence[AttentionMaps], name: str, along: str) -> Positions:
    offsets = _offsets(parts, along)
    places = [part.sequences[name].places + offset for part, offset in zip(parts, offsets, strict=True)]
    return Positions([label for part in parts for label in part.sequences[name].labels], np.concatenate(places))


def _offsets(parts: Sequence[AttentionMaps], name: str) -> list[int]:
    """How many positions of a sequence come before each part."""
    sizes = [len(part.sequences[name].labels) for part in parts]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _predictions(parts: Sequence[AttentionMaps]) -> tuple[Prediction, ...]:
    found = []
    for number, part in enumerate(parts):
        for each in part.outputs:
            if each.place is not None:
                sequence, position = each.place
                each = replace(each, place=(sequence, position + _offsets(parts, sequence)[number]))
            found.append(each)
    return tuple(found)
