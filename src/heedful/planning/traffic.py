"""Closed forms for the bytes that one GPU sends in a step along each axis, if collective operations use rings."""

from __future__ import annotations

from heedful.planning.layouts import Layout
from heedful.planning.memory import FULL
from heedful.planning.parameters import ModelParameters
from heedful.planning.shape import ModelShape


def traffic_of(shape: ModelShape, parameters: ModelParameters, layout: Layout, block_bytes: int) -> dict[str, int]:
    """Bytes sent per step and axis."""
    held, others = parameters.held(layout), parameters.others_share(layout)
    blocks = sum(count * share.gathered for count, share in parameters.block_shares(layout))
    # Blocks are gathered for the forward pass and again for the backward pass, the others once.
    gathered = 2 * block_bytes * blocks + FULL * others.gathered
    summed = FULL * (blocks + others.gathered)
    # Copies of stages sum their gradients once, after all parts; the others after each part.
    sums = layout.parts if layout.pipeline == 1 else 1
    return {
        "replicate": sums * 2 * _ring(FULL * held, layout.replicate),
        "shard": layout.parts * _ring(gathered + summed, layout.shard),
        "tensor": layout.parts * 2 * _ring(_layer_sums(shape, layout, block_bytes), layout.tensor),
        "pipeline": layout.parts * _handed_on(shape, layout),
    }


def _ring(size: int, gpus: int) -> int:
    """What each GPU sends when `size` bytes are gathered by all, or summed and left in shares."""
    return size * (gpus - 1) // gpus


def _layer_sums(shape: ModelShape, layout: Layout, block_bytes: int) -> int:
    """Bytes of activations that are summed over the GPUs that share a layer."""
    total = 0
    for stack in shape.stacks:
        tokens = layout.sequences * stack.length * stack.width
        # A sum after each sub-layer; in the backward pass one before each; with recomputing, the forward ones again.
        forward = (1 + stack.attentions) * tokens
        memory = layout.sequences * stack.memory_length * stack.width
        passes = 3 if layout.recompute else 2
        total += block_bytes * (passes * forward + memory) * stack.config.num_layers // layout.pipeline
        total += FULL * tokens  # the embeddings
    return total + FULL * layout.sequences * shape.targets * shape.width  # the gradient of the loss


def _handed_on(shape: ModelShape, layout: Layout) -> int:
    """Bytes that a stage passes on to the next one, and gradients that it passes back."""
    return 2 * FULL * layout.sequences * shape.tokens * shape.width if layout.pipeline > 1 else 0
