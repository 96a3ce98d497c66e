"""What attention weights lie between: positions with labels and places, and the maps from one to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# So many are named where positions are printed.
SHOWN_LABELS = 8

Kind = Literal["encoder", "decoder", "cross", "content", "query", "image"]


@dataclass(frozen=True)
class Positions:
    """The positions of a sequence: a label for each, and its place N A, which distances are measured between.

    A place is a number along a text, or row and column in a grid; a position that is nowhere has NaN.
    """

    labels: list[str]
    places: NDArray[np.float64]

    def __repr__(self) -> str:
        more = ", ..." if len(self.labels) > SHOWN_LABELS else ""
        return f"Positions({len(self.labels)}: {', '.join(map(repr, self.labels[:SHOWN_LABELS]))}{more})"

    @classmethod
    def in_a_row(cls, labels: list[str], first: int = 0) -> Positions:
        """Positions one after the other, the first of which is at place `first`."""
        return cls(labels, np.arange(first, first + len(labels), dtype=np.float64)[:, None])

    @classmethod
    def along(cls, labels: list[str], others: int) -> Positions:
        """Positions spread evenly along a sequence of so many others, with which they begin and end."""
        return cls(labels, np.linspace(0, others - 1, len(labels))[:, None])

    @classmethod
    def on_a_grid(cls, rows: int, columns: int, class_token: bool) -> Positions:
        """Patches row by row, behind a class token that is nowhere, if there is one."""
        places = np.indices((rows, columns)).reshape(2, -1).T.astype(np.float64)
        labels = [f"{row:.0f},{column:.0f}" for row, column in places + 1]
        if not class_token:
            return cls(labels, places)
        return cls(["class token", *labels], np.concatenate([np.full((1, 2), np.nan), places]))


@dataclass(frozen=True)
class AttentionMap:
    """The weights H T S of one layer's heads, from positions of the sequence `queries` to those of `keys`."""

    kind: Kind
    layer: int
    queries: str
    keys: str
    weights: NDArray[np.float32]

    def __repr__(self) -> str:
        heads, queries, keys = self.weights.shape
        place = f"{self.kind} layer {self.layer}"
        return f"AttentionMap({place}: {heads} heads, {queries} of {self.queries} x {keys} of {self.keys})"
