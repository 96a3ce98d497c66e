"""Keys and values of the positions already decoded, in preallocated slots, for rows that have nothing in common.

Every sentence owns one slot with `beam` rows; every row stands at its own position, so that a free slot can take a new
sentence while the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.layers.masks import added_to_scores

# Attention over a number of keys that is not a multiple of 16, the width of an AVX-512 vector, takes other code
# paths in torch's CPU kernels; padding to these sizes keeps a sentence's result the same whatever it is batched with.
KEY_MULTIPLE = 16
# A linear layer over fewer rows takes another kernel, whose sums differ in the last bit.
FEWEST_ROWS = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 4


def with_enough_rows(x: Tensor) -> Tensor:
    """The rows, followed by rows of zeros where they would be too few for the usual kernel."""
    missing = FEWEST_ROWS - len(x)
    return torch.cat([x, x.new_zeros(missing, *x.shape[1:])]) if missing > 0 else x


def padded_length(length: int) -> int:
    """The number of keys to attend over when the longest row has `length` of them."""
    return max(1, -(-length // KEY_MULTIPLE)) * KEY_MULTIPLE


def stored_type(weight: Tensor) -> torch.dtype:
    """The type of what layers with weights like this one give, hence of a cache: theirs, unless autocast has its own.

    Autocast leaves fp64 as it is.
    """
    device = weight.device.type
    casts = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if casts and weight.dtype != torch.float64 else weight.dtype


@dataclass
class LayerCache:
    """One layer's part of the cache during one step."""

    key_RHSK: Tensor
    value_RHSV: Tensor
    rows_R: Tensor
    positions_NQ: Tensor
    key_positions: Tensor
    mask_N1QS: Tensor

    def spread(self, x_RX: Tensor) -> Tensor:
        """Every row is a group of its own."""
        return x_RX[:, None]

    def collect(self, x_R1X: Tensor) -> Tensor:
        """The rows of all groups."""
        return x_R1X[:, 0]

    def append(self, key_RH1K: Tensor, value_RH1V: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new position of every row, and return all positions."""
        positions_R = self.positions_NQ[:, 0]
        self.key_RHSK[self.rows_R, :, positions_R] = key_RH1K[:, :, 0]
        self.value_RHSV[self.rows_R, :, positions_R] = value_RH1V[:, :, 0]
        return self.key_RHSK, self.value_RHSV


class KeyValueCache:
    """The self-attention cache of all layers: L rows H positions K."""

    def __init__(self, key_shape: tuple[int, ...], value_width: int, device: torch.device, dtype: torch.dtype) -> None:
        layers, rows, heads, length, _ = key_shape
        self.length = length
        self.keys = torch.zeros(key_shape, dtype=dtype, device=device)
        self.values = torch.zeros(layers, rows, heads, length, value_width, dtype=dtype, device=device)
        self.positions = torch.zeros(rows, dtype=torch.long, device=device)
        self.rows = torch.arange(rows, device=device)

    def used_length(self, rows: int) -> int:
        """The padded number of positions that the first `rows` rows need in the coming step."""
        return min(self.length, padded_length(int(self.positions[:rows].max()) + 1))

    def layers(self, rows: int) -> list[LayerCache]:
        """The views of the first `rows` rows that one step works on, layer by layer."""
        used = self.used_length(rows)
        positions_R1 = self.positions[:rows, None]
        key_positions = torch.arange(used, device=positions_R1.device)[None]
        mask = added_to_scores(key_positions <= positions_R1, self.keys.dtype)[:, None, None]
        return [
            LayerCache(
                key[:rows, :, :used], value[:rows, :, :used], self.rows[:rows], positions_R1, key_positions, mask
            )
            for key, value in zip(self.keys, self.values, strict=True)
        ]

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`."""
        changed = (parents_R != self.rows[: len(parents_R)]).nonzero()[:, 0]
        self.copy_rows(changed, parents_R[changed])

    def copy_rows(self, destination: Tensor, origin: Tensor) -> None:
        """Let rows `destination` continue from rows `origin`."""
        used = int(self.positions[origin].max()) if len(origin) else 0
        self.keys[:, destination, :, :used] = self.keys[:, origin, :, :used]
        self.values[:, destination, :, :used] = self.values[:, origin, :, :used]
        self.positions[destination] = self.positions[origin]


def rows_of(slots: Tensor, beam: int) -> Tensor:
    """The rows of some slots."""
    return (slots[:, None] * beam + torch.arange(beam, device=slots.device)).flatten()
