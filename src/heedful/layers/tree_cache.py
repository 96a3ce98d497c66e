"""Keys and values of the positions already decoded by beams, in which hypotheses share what they have in common.

The tokens of a sentence's hypotheses form a tree, and each node has a place in the sentence's part of the cache. A
small table says which places lie on the path of which hypothesis: when hypotheses branch or are given up, the table
changes, and no key or value is moved. The places of nodes that no path goes through are reused by the next nodes, the
lowest first, so that a step attends over little more than the nodes of the longest path. Where a node is placed depends
on its own sentence alone, and so does, to the last bit, the result of attention to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.layers.kv_cache import padded_length, with_enough_rows
from heedful.layers.masks import added_to_scores

# There is initially room for this many steps of paths that have nothing in common.
FIRST_STEPS = 6


@dataclass
class TreeLayerCache:
    """One layer's part of the cache during one step; the Q rows of a sentence are queries of one attention.

    If `rows_A` is given, only those rows take part. Other layers see only these, one after the other, with rows of
    zeros after them if they are fewer than `FEWEST_ROWS`.
    """

    rows_A: Tensor | None
    key_NHSK: Tensor
    value_NHSV: Tensor
    # All keys and values, node by node, and where the new nodes are among them.
    keys_PX: Tensor
    values_PX: Tensor
    nodes_R: Tensor
    positions_NQ: Tensor
    key_positions: Tensor
    mask_N1QS: Tensor

    def spread(self, x_AX: Tensor) -> Tensor:
        """The rows that take part as queries of their sentences, with zeros for the others."""
        sentences, queries = self.positions_NQ.shape
        if self.rows_A is None:
            return x_AX[: sentences * queries].view(sentences, queries, -1)
        x_RX = x_AX.new_zeros(sentences * queries, x_AX.shape[1])
        return x_RX.index_copy_(0, self.rows_A, x_AX[: len(self.rows_A)]).view(sentences, queries, -1)

    def collect(self, x_NQX: Tensor) -> Tensor:
        """The rows that take part."""
        x_RX = x_NQX.flatten(0, 1)
        return with_enough_rows(x_RX if self.rows_A is None else x_RX.index_select(0, self.rows_A))

    def append(self, key_NHQK: Tensor, value_NHQV: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new node of every row, and return all nodes of its sentence."""
        rows = len(self.nodes_R)
        self.keys_PX.index_copy_(0, self.nodes_R, key_NHQK.transpose(1, 2).reshape(rows, -1))
        self.values_PX.index_copy_(0, self.nodes_R, value_NHQV.transpose(1, 2).reshape(rows, -1))
        return self.key_NHSK, self.value_NHSV


class TreeCache:
    """The self-attention cache of all layers: L sentences places H K, so that a node lies in one piece."""

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        sentences: int,
        beam: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        layers, heads, key_width, value_width = shape
        self.beam = beam
        places = padded_length(FIRST_STEPS * beam)
        self.keys = torch.zeros(layers, sentences, places, heads, key_width, dtype=dtype, device=device)
        self.values = torch.zeros(layers, sentences, places, heads, value_width, dtype=dtype, device=device)
        self.paths_NQS = torch.zeros(sentences, beam, places, dtype=torch.bool, device=device)
        self.key_positions_NS = torch.zeros(sentences, places, dtype=torch.long, device=device)
        self.positions_N = torch.zeros(sentences, dtype=torch.long, device=device)
        self.sentences_N1 = torch.arange(sentences, device=device)[:, None]
        # Places beyond these are on no path.
        self.used = 0

    def layers(self, sentences: int, rows_A: Tensor | None = None) -> list[TreeLayerCache]:
        """Give every row of the first sentences a node, and return the views that one step works on, layer by layer.

        If `rows_A` is given, only those rows keep their paths; the others see nothing but their own node.
        """
        self.make_room(self.used + self.beam)
        paths_NQS = self.paths_NQS[:sentences, :, : self.used + self.beam]
        if rows_A is not None:
            idle_R = torch.ones(sentences * self.beam, dtype=torch.bool, device=rows_A.device)
            paths_NQS[idle_R.index_fill_(0, rows_A, False).view(sentences, self.beam)] = False
        # The sort is stable: the lowest free places come first.
        places_NQ = paths_NQS.any(1).byte().argsort(dim=1, stable=True)[:, : self.beam]
        paths_NQS.scatter_(2, places_NQ[:, :, None], True)
        positions_NQ = self.positions_N[:sentences, None].expand(-1, self.beam)
        self.key_positions_NS[:sentences].scatter_(1, places_NQ, positions_NQ)
        self.used = int(paths_NQS.flatten(0, 1).any(0).nonzero().max()) + 1
        attended = padded_length(self.used)
        mask_N1QS = added_to_scores(self.paths_NQS[:sentences, None, :, :attended], self.keys.dtype)
        key_positions = self.key_positions_NS[:sentences, :attended]
        nodes_R = (self.sentences_N1[:sentences] * self.paths_NQS.shape[2] + places_NQ).flatten()
        stored = [each.flatten(1, 2).flatten(2) for each in (self.keys, self.values)]
        attended_to = [each[:, :sentences, :attended].transpose(2, 3) for each in (self.keys, self.values)]
        return [
            TreeLayerCache(rows_A, key, value, keys_PX, values_PX, nodes_R, positions_NQ, key_positions, mask_N1QS)
            for key, value, keys_PX, values_PX in zip(*attended_to, *stored, strict=True)
        ]

    def make_room(self, places: int) -> None:
        """Make room for at least so many places; how many are needed depends on how early the paths part."""
        there = self.paths_NQS.shape[2]
        if places > there:
            more = padded_length(max(places, 2 * there)) - there
            self.keys, self.values = (F.pad(each, (0, 0, 0, 0, 0, more)) for each in (self.keys, self.values))
            self.paths_NQS = F.pad(self.paths_NQS, (0, more))
            self.key_positions_NS = F.pad(self.key_positions_NS, (0, more))

    def end_step(self, sentences: int) -> None:
        """The first sentences are now one position longer."""
        self.positions_N[:sentences] += 1

    def begin(self, slots_N: Tensor) -> None:
        """Let these sentences start again."""
        self.paths_NQS[slots_N] = False
        self.positions_N[slots_N] = 0

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`, a row of the same sentence."""
        paths_RS = self.paths_NQS.flatten(0, 1)[:, : self.used]
        paths_RS[: len(parents_R)] = paths_RS[parents_R]

    def copy_sentences(self, destination_N: Tensor, origin_N: Tensor) -> None:
        """Let sentences continue in other slots."""
        self.keys[:, destination_N, : self.used] = self.keys[:, origin_N, : self.used]
        self.values[:, destination_N, : self.used] = self.values[:, origin_N, : self.used]
        self.paths_NQS[destination_N] = self.paths_NQS[origin_N]
        self.key_positions_NS[destination_N] = self.key_positions_NS[origin_N]
        self.positions_N[destination_N] = self.positions_N[origin_N]
