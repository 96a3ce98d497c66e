"""The output layer and label-smoothed cross entropy in one, a piece of the rows at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Rows of logits per piece are chosen so that a piece stays near this many elements: larger tensors are
# returned to the operating system after use, and cost page faults at every step.
ELEMENTS_PER_PIECE = 4 * 2**20


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradients along with the loss, so that no piece of logits is kept or computed twice."""

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        vocabulary = weight_VD.shape[0]
        rows = max(1, ELEMENTS_PER_PIECE // vocabulary)
        hidden_gradient, weight_gradient = torch.empty_like(hidden_ND), torch.zeros_like(weight_VD)
        smoothed = torch.zeros((), device=hidden_ND.device)
        plain = torch.zeros((), device=hidden_ND.device)
        for start in range(0, len(labels_N), rows):
            hidden, labels_N1 = hidden_ND[start : start + rows], labels_N[start : start + rows, None]
            logits = hidden @ weight_VD.T
            chosen = logits.gather(1, labels_N1)
            log_total = logits.logsumexp(1, keepdim=True)
            plain += (log_total - chosen).sum()
            smoothed += (log_total - (1 - smoothing) * chosen - smoothing * logits.mean(1, True)).sum()
            gradient = logits.sub_(log_total).exp_().sub_(smoothing / vocabulary)
            gradient.scatter_add_(1, labels_N1, torch.full_like(chosen, smoothing - 1.0))
            torch.mm(gradient, weight_VD, out=hidden_gradient[start : start + rows])
            weight_gradient.addmm_(gradient.T, hidden)
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * gradients[0], weight_gradient * gradients[0], None, None


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The summed loss with label smoothing (paper, 5.4), to be trained on, and without, to be reported."""
    with torch.autocast(hidden_ND.device.type, enabled=False):
        return _LinearCrossEntropy.apply(hidden_ND.float(), weight_VD, labels_N, smoothing)
