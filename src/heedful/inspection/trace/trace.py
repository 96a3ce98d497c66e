"""What a model computed for an input: every intermediate tensor by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.config import nearest
from heedful.errors import UserError, not_numbers
from heedful.inspection.trace.patches import Patches
from heedful.inspection.trace.point import Point
from heedful.inspection.trace.tapping import tapped_view
from heedful.machine.devices import flushed_denormals, one_thread


class Recorder:
    """A tap that keeps every tensor, after patches were applied."""

    def __init__(self, patches: Patches | None = None) -> None:
        self.patches = patches
        self.points: dict[str, Point] = {}
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, point: Point, tensor: Tensor) -> Tensor:
        """Keep a copy: some activations are computed in place."""
        if self.patches is not None:
            tensor = self.patches(point, tensor)
        self.points[point.name] = point
        self.tensors[point.name] = tensor.detach().clone()
        return tensor


@dataclass(frozen=True)
class Trace(Mapping[str, Tensor]):
    """The tensors by name, in the order in which they were computed, and the tokens that they belong to.

    `tokens` has the labels of each sequence: `source` and `target` (what the decoder reads) for a translation; for a
    language model `text`, and `next`, what each position predicts; otherwise `text`, or the patches of an `image`.
    """

    model: str
    family: str
    tokens: dict[str, list[str]]
    points: dict[str, Point]
    tensors: dict[str, Tensor] = field(repr=False)
    texts: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise UserError(f"there is no {name!r} in the trace: {nearest(name, list(self.tensors))}")
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(labels)} {name} tokens" for name, labels in self.tokens.items())
        return f"Trace({self.model!r}, {self.family}, {len(self)} tensors of {sizes})"

    def letters(self, name: str) -> str:
        """The letters of a tensor's axes, as docs/shapes.md has them."""
        self[name]
        return self.points[name].letters

    @property
    def written(self) -> str | None:
        """The sequence that is written token by token, if there is one."""
        for name in ("target", "next"):
            if name in self.tokens:
                return name
        return None

    def step(self, number: int) -> Trace:
        """What a decoder computes in one step, 0 for the first: of its sequence, only the row of the newest token.

        That row sees the keys up to itself. What is computed once, such as the encoder's part, stays whole.
        """
        written = self.written
        if written is None:
            raise UserError("this model answers in one go: there are no steps")
        length = len(self.tokens[written])
        if not 0 <= number < length:
            raise UserError(f"there is no step {number}: the steps are 0 to {length - 1}")
        own = {written, "text"} if written == "next" else {written}
        tensors = {name: _at_step(self.points[name], each, own, number) for name, each in self.tensors.items()}
        tokens = {name: labels[: number + 1] if name in own else labels for name, labels in self.tokens.items()}
        return replace(self, tensors=tensors, tokens=tokens)


def _at_step(point: Point, tensor: Tensor, own: set[str], number: int) -> Tensor:
    rows, columns = point.axis("T"), point.axis("S")
    if rows is not None and point.rows in own:
        tensor = tensor.narrow(rows, number, 1)
    if columns is not None and point.columns in own:
        tensor = tensor.narrow(columns, 0, number + 1)
    return tensor


def recorded(
    model: nn.Module, patches: Patches | None, run: Callable[[Any], object]
) -> tuple[dict[str, Point], dict[str, Tensor]]:
    """What a view of a model computes while `run` is called with it; its logits, if any, must be numbers."""
    recorder = Recorder(patches)
    view, _ = tapped_view(model, recorder)
    with one_thread(), flushed_denormals(), torch.no_grad():
        run(view)
        logits = recorder.tensors.get("logits")
        if logits is not None:
            if bool(logits.isnan().any()):
                raise not_numbers("scores")
            point = recorder.points["logits"]
            recorder.points["probabilities"] = replace(point, name="probabilities")
            recorder.tensors["probabilities"] = logits.softmax(-1)
    return recorder.points, recorder.tensors


def check_traceable(family: str) -> None:
    """Raise a UserError for a model without attention blocks."""
    if family == "recurrent":
        raise UserError("a recurrent model has no blocks of attention to trace: `attention` shows what it looks at")
