"""What is done to each block of a model from outside: recomputing its activations, compiling it."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from heedful.errors import UserError
from heedful.layers.blocks import CrossBlock, SelfBlock
from heedful.layers.dropout import same_masks_again
from heedful.layers.relative_attention import RelativeBlock
from heedful.training.config import ParallelConfig


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The blocks of a model's stacks, in order."""
    return [each for each in model.modules() if isinstance(each, SelfBlock | CrossBlock | RelativeBlock)]


def prepare_blocks(model: nn.Module, config: ParallelConfig) -> None:
    """Recompute the activations of a model's blocks, or compile them, where the settings ask for it."""
    if config.compile:
        check_compiler(next(model.parameters()).device)
    for block in blocks_of(model):
        if config.activation_checkpointing:
            recompute_activations(block)
        if config.compile:
            block.compile()


def check_compiler(device: torch.device) -> None:
    """Raise a UserError if torch cannot compile here, which on a CPU needs a C++ compiler."""
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(3, device=device))
    except Exception as error:  # every step of a tool chain has its own errors
        told = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise UserError(
            f"training.parallel.compile is true, but torch cannot compile on this machine ({told}): install a C++ "
            "compiler such as g++, or leave the setting out"
        ) from None


def recompute_activations(block: nn.Module) -> None:
    """Keep only a block's input of its activations, and compute the others again for its gradient."""
    # Replaces the method rather than wrapping the module: that would change the parameters' names.
    forward = partial(checkpoint, block.forward, use_reentrant=False, context_fn=same_masks_again)
    block.forward = forward
