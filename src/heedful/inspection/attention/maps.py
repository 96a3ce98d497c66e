"""Everything that a model attended to, for one input: maps between labelled positions, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heedful.config import nearest
from heedful.errors import UserError
from heedful.inspection.attention.patch_image import PatchImage
from heedful.inspection.attention.predictions import Prediction
from heedful.inspection.attention.rollout import Rollout, rollouts
from heedful.inspection.attention.weights import entropy, mean_distance, pack, rounded, to_codes

# How many labels are shown where positions are printed.
SHOWN_LABELS = 8

Kind = Literal["encoder", "decoder", "cross", "content", "query", "image"]


@dataclass(frozen=True)
class Positions:
    """The positions of a sequence: a label for each, and places N A, between which distances are measured.

    A place is a number along a text, or row and column in a grid; a position without a place has NaN.
    """

    labels: list[str]
    places: NDArray[np.float64]

    def __repr__(self) -> str:
        more = ", ..." if len(self.labels) > SHOWN_LABELS else ""
        return f"Positions({len(self.labels)}: {', '.join(map(repr, self.labels[:SHOWN_LABELS]))}{more})"

    @classmethod
    def in_a_row(cls, labels: list[str], first: int = 0) -> Positions:
        """Positions one after the other, from place `first`."""
        return cls(labels, np.arange(first, first + len(labels), dtype=np.float64)[:, None])

    @classmethod
    def along(cls, labels: list[str], others: int) -> Positions:
        """Positions spread evenly along a sequence of this many others, with the same first and last place."""
        return cls(labels, np.linspace(0, others - 1, len(labels))[:, None])

    @classmethod
    def on_a_grid(cls, rows: int, columns: int, class_token: bool) -> Positions:
        """Patches row by row, after a class token without a place, if there is one."""
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


FORMAT = 1

# From an array to the entry of a document that holds it.
Write = Callable[[NDArray[np.floating]], dict[str, Any]]


@dataclass(frozen=True)
class AttentionMaps:
    """The exact weights of all layers and heads, the sequences that they connect, and what the model answered.

    `texts` are what was read, and what was written: labels of a sequence may be parts of characters.
    """

    model: str
    family: str
    sequences: dict[str, Positions]
    maps: list[AttentionMap]
    outputs: tuple[Prediction, ...] = ()
    image: PatchImage | None = None
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = []
        for kind in self.kinds:
            found = self._of_kind(kind)
            heads, queries, keys = found[0].weights.shape
            kinds.append(f"{kind}: {len(found)} layers x {heads} heads, {queries} x {keys}")
        return f"AttentionMaps({self.model!r}, {'; '.join(kinds)})"

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention in the maps, such as encoder, decoder and cross."""
        return list(dict.fromkeys(each.kind for each in self.maps))

    def weights(self, kind: str) -> NDArray[np.float32]:
        """The weights L H T S of all layers of a kind."""
        return np.stack([each.weights for each in self._of_kind(kind)])

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """The labels of the queries, and of the keys, of a kind."""
        first = self._of_kind(kind)[0]
        return self.sequences[first.queries].labels, self.sequences[first.keys].labels

    def entropy(self, kind: str) -> NDArray[np.float64]:
        """The entropy L H of each head in nats, a mean over queries."""
        return np.stack([entropy(each.weights) for each in self._of_kind(kind)])

    def mean_distance(self, kind: str) -> NDArray[np.float64]:
        """How far each head L H looks: in tokens, or in patches; in cross-attention, from the diagonal."""
        return np.stack([self._mean_distance(each) for each in self._of_kind(kind)])

    def rollout(self, kind: str) -> NDArray[np.float64]:
        """The shares T S of the inputs in the positions after the last layer (Abnar and Zuidema, 2020)."""
        self._of_kind(kind)
        for each in self._rollouts:
            if each.kind == kind:
                return each.weights
        raise UserError(f"there is no rollout of {kind} attention in a model of the family {self.family}")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data, with weights to three significant digits."""
        return self._document(lambda array: {"weights": rounded(array).tolist()})

    def html(self) -> str:
        """A page that shows everything, in one file that needs no network."""
        from heedful.inspection.attention.attention_page import attention_page

        return attention_page(self._packed_document())

    def _repr_html_(self) -> str:
        from heedful.inspection.attention.attention_page import notebook_frame

        return notebook_frame(self.html())

    def _packed_document(self) -> dict[str, Any]:
        """The data of `to_json` with packed arrays, a twentieth of its size."""
        return self._document(lambda array: {"packed": pack(to_codes(array))})

    def _document(self, write: Write) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model,
            "family": self.family,
            "texts": list(self.texts),
            "sequences": {name: each.labels for name, each in self.sequences.items()},
            "maps": [self._entry(each, write) for each in self.maps],
            "rollouts": [
                {"kind": each.kind, "queries": each.queries, "keys": each.keys, **write(each.weights)}
                for each in self._rollouts
            ],
            "outputs": [each.to_json() for each in self.outputs],
            "image": None if self.image is None else self.image.to_json(),
        }

    def _entry(self, each: AttentionMap, write: Write) -> dict[str, Any]:
        return {
            "kind": each.kind,
            "layer": each.layer,
            "queries": each.queries,
            "keys": each.keys,
            "entropy": _short(entropy(each.weights)),
            "mean_distance": _short(self._mean_distance(each)),
            **write(each.weights),
        }

    @cached_property
    def _rollouts(self) -> list[Rollout]:
        return rollouts(self.maps)

    def _mean_distance(self, each: AttentionMap) -> NDArray[np.float64]:
        return mean_distance(each.weights, self.sequences[each.queries], self.sequences[each.keys])

    def _of_kind(self, kind: str) -> list[AttentionMap]:
        found = [each for each in self.maps if each.kind == kind]
        if not found:
            raise UserError(f"this model has no {kind!r} attention: {nearest(kind, list(self.kinds))}")
        return found


def _short(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
