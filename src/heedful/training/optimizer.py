"""Adam as in the paper (5.3), with decoupled weight decay where it is set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.config import require

# What AdamW keeps of a parameter: a number, and two tensors of its shape.
KEPT = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class OptimizerConfig:
    """Settings of AdamW; a `clip_norm` of 0 leaves gradients as they are."""

    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.01
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        require(self.beta1, "beta1", 0, 1)
        require(self.beta2, "beta2", 0, 1)
        for name in ("epsilon", "weight_decay", "clip_norm"):
            require(getattr(self, name), name, 0)


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW with torch's fused kernel; weight decay applies to matrices only."""
    parameters = list(model.parameters())
    matrices = [each for each in parameters if each.dim() >= 2]
    vectors = [each for each in parameters if each.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    fused = parameters[0].device.type in ("cpu", "cuda", "mps")
    betas = (config.beta1, config.beta2)
    # The rate is a dummy: the loop sets it at every step.
    return torch.optim.AdamW(groups, lr=1.0, betas=betas, eps=config.epsilon, fused=fused)


def clip_gradients(model: nn.Module, largest_norm: float) -> Tensor:
    """Scale the gradients down to a norm of `largest_norm`, unless that is 0; return the norm they had."""
    return nn.utils.clip_grad_norm_(model.parameters(), largest_norm or float("inf"))


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.AdamW) -> dict[str, Tensor]:
    """The optimizer's state by parameter name, to be saved."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.AdamW, tensors: dict[str, Tensor]) -> None:
    """Give the optimizer the state that `optimizer_tensors` took."""
    for name, parameter in model.named_parameters():
        state = {
            # A copy: what is loaded is a view of the file, which will be removed.
            key: tensors[f"{name}/{key}"].clone().to(parameter.device)
            for key in KEPT
            if f"{name}/{key}" in tensors
        }
        if state:
            optimizer.state[parameter] = state
