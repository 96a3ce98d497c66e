"""Closed forms for the memory of one GPU at the peak of a step, by kind."""

from __future__ import annotations

import torch

from heedful.planning.layouts import Layout
from heedful.planning.parameters import ModelParameters, Share
from heedful.planning.shape import ModelShape, StackShape
from heedful.tasks.cross_entropy import rows_per_piece

FULL = 4  # bytes of a number that is held, summed over GPUs, or part of the loss
# How many tensors of the inner width the activation of a feed-forward network keeps for its gradient.
KEPT_INSIDE = {"relu": 1, "gelu": 2, "gelu_tanh": 2, "silu": 2, "swiglu": 4}


def memory_of(
    shape: ModelShape, parameters: ModelParameters, layout: Layout, size: int, average: bool
) -> dict[str, int]:
    """Bytes by kind at the moment when there are most; a number in a block takes `size` bytes.

    That moment is in the loss, in the backward pass of the last block, or at its end.
    """
    held, others = parameters.held(layout), parameters.others_share(layout)
    always = {"parameters": FULL * held, "optimizer": (2 + average) * FULL * held}
    before = FULL * held if layout.parts > 1 else 0  # gradients of earlier parts
    blocks = parameters.block_shares(layout)
    kept = layout.sequences * sum(
        count * kept_by_block(stack, layout, size) for (count, _), stack in zip(blocks, shape.stacks, strict=True)
    )
    kept *= layout.parts if layout.pipeline > 1 else 1  # all parts pass a stage before the first comes back
    last = shape.stacks[-1]
    whole_block = layout.sequences * block_activations(last, layout.tensor, size)
    rows = FULL * layout.sequences * shape.targets * shape.width
    stream = FULL * layout.sequences * last.length * shape.width
    table = FULL * shape.classes * shape.width // layout.tensor
    gathered = FULL * others.gathered
    again = whole_block if layout.recompute else 0
    inside = _block_gradients(last, layout, size)
    buffers = _block_buffers([share for _, share in blocks], size)
    moments: list[dict[str, int]] = [
        {
            "activations": kept + stream + 4 * rows + table + _piece(shape, layout),
            "gradients": before,
            "buffers": gathered,
        },
        {"activations": kept + table + 3 * stream + again + inside, "gradients": before, "buffers": gathered + buffers},
        {"activations": 2 * stream + 2 * table, "gradients": FULL * held, "buffers": 2 * gathered},
    ]
    most = max(moments, key=lambda each: sum(each.values()))
    return {**always, **most}


def block_activations(stack: StackShape, tensor: int, size: int) -> int:
    """Bytes that a block keeps of one sequence between the passes."""
    config, length, memory = stack.config, stack.length, stack.memory_length
    residuals = 1 + stack.attentions
    # Each residual connection keeps its input and the norm's output, with two statistics, and the dropout's mask.
    token = residuals * (2 * size * stack.width + 8 + stack.width * bool(config.dropout))
    heads = config.attention.num_heads
    queries, given = size * stack.heads_width // tensor, size * stack.values_width // tensor
    row = 4 * heads // tensor
    keys_values = size * stack.keys_values_width // tensor
    shared = heads != (config.attention.num_key_value_heads or heads)
    repeated = queries + given if shared else 0
    turned = 2 * queries if stack.rotates else 0
    own = queries + keys_values + repeated + turned + given + row
    inner = KEPT_INSIDE[config.feed_forward.activation] * size * stack.inner_width // tensor
    total = length * (token + own + inner)
    if memory:
        total += length * (queries + given + row) + memory * (size * stack.width + keys_values + repeated)
    if stack.biased:
        total += size * heads // tensor * length * length
    if config.local_window is not None:  # every other layer: a mask that is added, and rows that see nothing
        total += (size * length * length + length * given) // 2
    return total


def kept_by_block(stack: StackShape, layout: Layout, size: int) -> int:
    """Bytes that a block keeps of one sequence until its gradient is computed."""
    if layout.recompute:
        return size * stack.width * (stack.length + stack.memory_length)
    return block_activations(stack, layout.tensor, size)


def _block_gradients(stack: StackShape, layout: Layout, size: int) -> int:
    """Bytes of gradients of activations that exist at once inside a block: those of the feed-forward network."""
    inner = 2 * stack.projected_width // layout.tensor
    return layout.sequences * stack.length * size * (inner + 2 * stack.width)


def _block_buffers(shares: list[Share], size: int) -> int:
    """Bytes of a block's gathered parameters and their gradients, and of the next block's."""
    largest = max(share.gathered for share in shares)
    gathered = 2 * size * largest
    return gathered + (FULL + size) * largest


def _piece(shape: ModelShape, layout: Layout) -> int:
    """Bytes of the logits that a GPU computes at a time."""
    classes = -(-shape.classes // layout.tensor)
    return FULL * classes * rows_per_piece(layout.sequences * shape.targets, classes, torch.device("cuda"))
