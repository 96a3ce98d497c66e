"""The floating-point operations of a training step: two for each multiplication in a matrix product."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.planning.shape import ModelShape, StackShape


@dataclass(frozen=True)
class Flops:
    """Operations of one token on average, over all GPUs; `recomputed` are those of blocks whose forward runs twice.

    Attention is counted over all pairs of positions, as its kernel computes it: what a causal mask or a window could
    save is not subtracted.
    """

    forward: float
    recomputed: float

    @property
    def backward(self) -> float:
        """Each product has two gradients, each of which is a product of the same size."""
        return 2 * self.forward

    def total(self, recompute: bool) -> float:
        """The operations of a token in training."""
        return self.forward + self.backward + (self.recomputed if recompute else 0.0)


def flops_of(shape: ModelShape) -> Flops:
    """The operations of a model's tokens."""
    blocks = sum(2.0 * stack.config.num_layers * block_products(stack) for stack in shape.stacks)
    output = 2.0 * (shape.targets * shape.width * shape.classes + shape.front)
    return Flops((blocks + output) / shape.tokens, blocks / shape.tokens)


def block_products(stack: StackShape) -> int:
    """The multiplications of one block for one sequence."""
    width, length, memory = stack.width, stack.length, stack.memory_length
    heads = stack.heads_width + stack.values_width
    own = length * width * (stack.heads_width + stack.keys_values_width + stack.values_width)
    own += length * length * heads
    cross = 0
    if memory:
        cross = length * width * (stack.heads_width + stack.values_width) + memory * width * stack.keys_values_width
        cross += length * memory * heads
    feed_forward = length * width * (stack.projected_width + stack.inner_width)
    return own + cross + feed_forward
