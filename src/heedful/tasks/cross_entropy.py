"""The output layer and label-smoothed cross entropy in one, a piece of the rows at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# A piece of logits has at most about this many elements: it stays in a cache, and no step allocates a large tensor,
# which the operating system would have to clear page by page.
ELEMENTS_PER_PIECE = 2**21
# With fewer rows, reading and writing the weights' gradient would take longer than the products.
FEWEST_ROWS = 128
# Sums of exp(logits) within these bounds have lost nothing in fp32 to overflow or underflow.
SAFE_TOTALS = (1e-26, 1e30)


def rows_per_piece(num_rows: int, weight_VD: Tensor) -> int:
    """How many rows of logits are computed at a time, so that all pieces are of about the same size.

    A device with memory of its own takes larger pieces.
    """
    elements = ELEMENTS_PER_PIECE if weight_VD.device.type == "cpu" else 32 * ELEMENTS_PER_PIECE
    most = max(FEWEST_ROWS, elements // weight_VD.shape[0])
    pieces = max(1, -(-num_rows // most))
    return max(1, -(-num_rows // pieces))


def _losses(
    hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, log_total_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    chosen_N = (hidden_ND * weight_VD[labels_N]).sum(1)
    plain = (log_total_N - chosen_N).sum()
    return plain + smoothing * (chosen_N - hidden_ND @ weight_VD.mean(0)).sum(), plain


def _exponentiate(
    hidden_ND: Tensor, weight_VD: Tensor, shift: bool, out_NV: Tensor, log_total_N: Tensor
) -> tuple[Tensor, bool]:
    """Put exp(logits) and the logarithms of their sums where they belong; give the sums, and whether to `shift` next.

    Logits from which the largest was taken away are always safe. That pass is left out until a sum shows the need.
    """
    torch.mm(hidden_ND, weight_VD.T, out=out_NV)
    if shift:
        largest_N1 = out_NV.amax(1, keepdim=True)
        total_N1 = out_NV.sub_(largest_N1).exp_().sum(1, keepdim=True)
        torch.add(total_N1.log(), largest_N1, out=log_total_N[:, None])
        return total_N1, True
    total_N1 = out_NV.exp_().sum(1, keepdim=True)
    least, most = SAFE_TOTALS
    if not (float(total_N1.min()) >= least and float(total_N1.max()) <= most):  # also where it is not a number
        return _exponentiate(hidden_ND, weight_VD, True, out_NV, log_total_N)
    torch.log(total_N1, out=log_total_N[:, None])
    return total_N1, False


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradients along with the loss, so that no logits are kept or computed twice.

    With e = exp(logits) and Z its sum over the vocabulary, the gradient by the logits of a row is
    e / Z - (1 - smoothing) onehot(label) - smoothing / V. Only e is ever a full matrix: 1 / Z is applied to the
    narrow factors of the products, and the other two terms are added to their results.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        rows = rows_per_piece(len(labels_N), weight_VD)
        hidden_gradient, weight_gradient = torch.empty_like(hidden_ND), torch.zeros_like(weight_VD)
        log_total_N = hidden_ND.new_empty(len(labels_N))
        shift = hidden_ND.device.type != "cpu"  # a look at the totals would make the host wait
        buffer = hidden_ND.new_empty(rows, weight_VD.shape[0])
        pieces = (each.split(rows) for each in (hidden_ND, hidden_gradient, log_total_N))
        for hidden, gradient, log_total in zip(*pieces, strict=True):
            powers = buffer[: len(hidden)]
            total_N1, shift = _exponentiate(hidden, weight_VD, shift, powers, log_total)
            torch.mm(powers, weight_VD, out=gradient).div_(total_N1)
            weight_gradient.addmm_(powers.T, hidden / total_N1)
        mean_D, labelled_ND = weight_VD.mean(0), weight_VD[labels_N]
        hidden_gradient.sub_(labelled_ND, alpha=1 - smoothing).sub_(mean_D, alpha=smoothing)
        weight_gradient.index_add_(0, labels_N, hidden_ND, alpha=smoothing - 1)
        weight_gradient.sub_(hidden_ND.sum(0), alpha=smoothing / len(weight_VD))
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        smoothed, plain = _losses(hidden_ND, weight_VD, labels_N, log_total_N, smoothing)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        # In place: they are large, and nobody else's. (A second call fails: torch sees that they were changed.)
        return hidden_gradient.mul_(gradients[0]), weight_gradient.mul_(gradients[0]), None, None


def _loss_only(hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    rows = rows_per_piece(len(labels_N), weight_VD)
    log_total_N = torch.cat([(hidden @ weight_VD.T).logsumexp(1) for hidden in hidden_ND.split(rows)])
    return _losses(hidden_ND, weight_VD, labels_N, log_total_N, smoothing)


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float, bias_V: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The summed loss with label smoothing (paper, 5.4), to be trained on, and without, to be reported."""
    if bias_V is not None:  # one input more, which is always 1, and whose weights are the bias
        hidden_ND = torch.cat([hidden_ND, hidden_ND.new_ones(len(hidden_ND), 1)], dim=1)
        weight_VD = torch.cat([weight_VD, bias_V[:, None]], dim=1)
    with torch.autocast(hidden_ND.device.type, enabled=False):
        if not torch.is_grad_enabled():
            return _loss_only(hidden_ND.float(), weight_VD, labels_N, smoothing)
        return _LinearCrossEntropy.apply(hidden_ND.float(), weight_VD, labels_N, smoothing)  # type: ignore[no-untyped-call]
