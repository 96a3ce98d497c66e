"""How a number of GPUs can be laid out along the axes of parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.planning.shape import ModelShape, StackShape
from heedful.training.parallel.layout import WITHOUT_STAGES

AXES = ("replicate", "shard", "tensor", "pipeline")
# More stages would wait for each other most of the time; more shares of a layer would be too small to compute with.
MOST_STAGES, MOST_SHARES = 16, 64


@dataclass(frozen=True)
class Layout:
    """GPUs by axis, and what each of them computes at a time.

    A step of a GPU has `parts` of `sequences` each; with `recompute`, only the input of a block's activations is kept.
    """

    replicate: int = 1
    shard: int = 1
    tensor: int = 1
    pipeline: int = 1
    recompute: bool = False
    sequences: int = 1
    parts: int = 1

    @property
    def copies(self) -> int:
        """How many sets of GPUs read their own data."""
        return self.replicate * self.shard

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.copies * self.tensor * self.pipeline

    def step_sequences(self) -> int:
        """The sequences of a step of all GPUs."""
        return self.copies * self.sequences * self.parts

    def __str__(self) -> str:
        axes = [f"{axis} {getattr(self, axis)}" for axis in AXES if getattr(self, axis) > 1] or ["1 GPU"]
        return " x ".join(axes) + (", recomputing" if self.recompute else "")


def meshes(shape: ModelShape, family: str, gpus: int) -> Iterator[Layout]:
    """All ways of laying out a number of GPUs that training accepts; `tensor` must divide heads and inner widths.

    Stages have equally many layers, need a family that can lie in stages, and combine with copies only.
    """
    for tensor in _divisors(gpus, MOST_SHARES):
        if not all(_can_be_split(stack, tensor) for stack in shape.stacks):
            continue
        copies = gpus // tensor
        for shard in _divisors(copies, copies):
            yield Layout(copies // shard, shard, tensor)
    for pipeline in _divisors(gpus, 1 if family in WITHOUT_STAGES else MOST_STAGES)[1:]:
        if shape.stacks[0].config.num_layers % pipeline == 0:
            yield Layout(gpus // pipeline, pipeline=pipeline)


def _can_be_split(stack: StackShape, tensor: int) -> bool:
    attention = stack.config.attention
    counts = (attention.num_heads, attention.num_key_value_heads or attention.num_heads, stack.inner_width)
    return all(count % tensor == 0 for count in counts)


def _divisors(number: int, most: int) -> list[int]:
    return [each for each in range(1, min(number, most) + 1) if number % each == 0]
