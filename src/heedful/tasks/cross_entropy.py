"""The output layer and label-smoothed cross entropy in one, some of the rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook
from torch.utils.checkpoint import checkpoint

from heedful.layers.dropout import same_masks_again

Losses = Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]

# A piece of logits has at most about this many elements: it stays in a cache, and no step allocates a large tensor,
# which the operating system would have to clear page by page.
ELEMENTS_PER_PIECE = 2**21
# With fewer rows, reading and writing the weights' gradient would take longer than the matrix products.
FEWEST_PIECE_ROWS = 128
# Sums of exp(logits) within these bounds have lost nothing to overflow or underflow in fp32.
SAFE_TOTALS = (1e-26, 1e30)


def rows_per_piece(num_rows: int, vocabulary: int, device: torch.device) -> int:
    """How many rows of logits are computed at a time, chosen so that all pieces have about the same size.

    A device with its own memory takes larger pieces.
    """
    elements = ELEMENTS_PER_PIECE if device.type == "cpu" else 32 * ELEMENTS_PER_PIECE
    most = max(FEWEST_PIECE_ROWS, elements // vocabulary)
    pieces = max(1, -(-num_rows // most))
    return max(1, -(-num_rows // pieces))


def in_full_precision(hidden_ND: Tensor) -> Tensor:
    """Rows in at least fp32: a sum over a vocabulary needs the digits."""
    return hidden_ND if hidden_ND.dtype == torch.float64 else hidden_ND.float()


def _losses(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, labels_N: Tensor, log_total_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    chosen_N, mean_N = (hidden_ND * weight_VD[labels_N]).sum(1), hidden_ND @ weight_VD.mean(0)
    if bias_V is not None:
        chosen_N, mean_N = chosen_N + bias_V[labels_N], mean_N + bias_V.mean()
    plain = (log_total_N - chosen_N).sum()
    return plain + smoothing * (chosen_N - mean_N).sum(), plain


def _exponentiate(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, shift: bool, out_NV: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """Write exp(logits) to `out_NV`; return their sums, the logarithms of those, and whether to `shift` next time.

    Logits are always safe once the largest is subtracted. That pass is skipped until a sum shows that it is needed.
    """
    if bias_V is None:
        torch.mm(hidden_ND, weight_VD.T, out=out_NV)
    else:
        torch.addmm(bias_V, hidden_ND, weight_VD.T, out=out_NV)
    if shift:
        largest_N1 = out_NV.amax(1, keepdim=True)
        total_N1 = out_NV.sub_(largest_N1).exp_().sum(1, keepdim=True)
        return total_N1, total_N1.log() + largest_N1, True
    total_N1 = out_NV.exp_().sum(1, keepdim=True)
    least, most = SAFE_TOTALS
    if bool(((total_N1 >= least) & (total_N1 <= most)).all()):  # neither holds for NaN
        return total_N1, total_N1.log(), False
    return _exponentiate(hidden_ND, weight_VD, bias_V, True, out_NV)


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradients along with the loss, so no logits are kept or computed twice.

    With e = exp(logits) and Z its sum over the vocabulary, the gradient by the logits of a row is
    e / Z - (1 - smoothing) onehot(label) - smoothing / V. Only e is ever a full matrix: 1 / Z is applied to the
    narrow factors of the products, and the other two terms are added to their results.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, labels_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        rows = rows_per_piece(len(labels_N), len(weight_VD), weight_VD.device)
        hidden_gradient, weight_gradient = torch.empty_like(hidden_ND), torch.zeros_like(weight_VD)
        bias_gradient = None if bias_V is None else torch.zeros_like(bias_V)
        log_total_N1 = hidden_ND.new_empty(len(labels_N), 1)
        shift = hidden_ND.device.type != "cpu"  # looking at the totals would make the host wait
        buffer = hidden_ND.new_empty(rows, len(weight_VD))
        pieces = (each.split(rows) for each in (hidden_ND, hidden_gradient, log_total_N1))
        for hidden, gradient, log_total in zip(*pieces, strict=True):
            powers = buffer[: len(hidden)]
            total_N1, log_total[:], shift = _exponentiate(hidden, weight_VD, bias_V, shift, powers)
            torch.mm(powers, weight_VD, out=gradient).div_(total_N1)
            weight_gradient.addmm_(powers.T, hidden / total_N1)
            if bias_gradient is not None:
                bias_gradient.addmv_(powers.T, total_N1[:, 0].reciprocal())
        even = smoothing / len(weight_VD)
        hidden_gradient.sub_(weight_VD[labels_N], alpha=1 - smoothing).sub_(weight_VD.mean(0), alpha=smoothing)
        weight_gradient.index_add_(0, labels_N, hidden_ND, alpha=smoothing - 1).sub_(hidden_ND.sum(0), alpha=even)
        if bias_gradient is not None:
            ones_N = bias_gradient.new_ones(len(labels_N))
            bias_gradient.index_add_(0, labels_N, ones_N, alpha=smoothing - 1).sub_(even * len(labels_N))
        ctx.save_for_backward(hidden_gradient, weight_gradient, bias_gradient)
        smoothed, plain = _losses(hidden_ND, weight_VD, bias_V, labels_N, log_total_N1[:, 0], smoothing)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # In place: they are large, and nobody else uses them. (A second call fails: torch sees the change.)
        by_input = (each if each is None else each.mul_(gradients[0]) for each in ctx.saved_tensors)
        return (*by_input, None, None)


def _loss_only(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, labels_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    rows = rows_per_piece(len(labels_N), len(weight_VD), weight_VD.device)
    log_total_N = torch.cat([F.linear(hidden, weight_VD, bias_V).logsumexp(1) for hidden in hidden_ND.split(rows)])
    return _losses(hidden_ND, weight_VD, bias_V, labels_N, log_total_N, smoothing)


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float, bias_V: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The losses of `output_cross_entropy` for the output layer x W^T + b, given by its weights."""
    with torch.autocast(hidden_ND.device.type, enabled=False):
        if not torch.is_grad_enabled():
            return _loss_only(in_full_precision(hidden_ND), weight_VD, bias_V, labels_N, smoothing)
        return _LinearCrossEntropy.apply(in_full_precision(hidden_ND), weight_VD, bias_V, labels_N, smoothing)  # type: ignore[no-untyped-call]


def _is_plain(output: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether a module is torch's linear layer with nothing attached, so its formula can stand in for a call."""
    return (
        type(output) is nn.Linear
        and type(output.weight) is nn.Parameter  # not a tensor subclass that computes differently
        and "forward" not in vars(output)
        and output._compiled_call_impl is None
        and not any((output._forward_hooks, output._forward_pre_hooks))
        and not any((output._backward_hooks, output._backward_pre_hooks))
        and not _has_any_global_hook()
    )


def _module_cross_entropy(
    output: nn.Module, hidden_ND: Tensor, labels_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The losses of any module that gives logits, by plain calls to it; no piece's logits are kept for the gradient.

    They are computed again for the gradient, so hooks and wrappers see a module that is called and differentiated
    like any other.
    """

    def losses(hidden_ND: Tensor, labels_N: Tensor) -> tuple[Tensor, Tensor]:
        scores_NV = output(hidden_ND).log_softmax(1)
        plain = -scores_NV.gather(1, labels_N[:, None]).sum()
        return (1 - smoothing) * plain - smoothing * scores_NV.mean(1).sum(), plain.detach()

    # The number of logits per row is known only after a call.
    rows = FEWEST_PIECE_ROWS if hidden_ND.device.type == "cpu" else 32 * FEWEST_PIECE_ROWS
    pieces = zip(hidden_ND.split(rows), labels_N.split(rows), strict=True)
    if torch.is_grad_enabled():
        found = [checkpoint(losses, *each, use_reentrant=False, context_fn=same_masks_again) for each in pieces]
    else:
        found = [losses(*each) for each in pieces]
    smoothed, plain = (torch.stack(each).sum() for each in zip(*found, strict=True))
    return smoothed, plain


def output_cross_entropy(
    output: nn.Module, hidden_ND: Tensor, labels_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The summed loss with label smoothing (paper, 5.4), to be trained on, and without, to be reported.

    `output` is any module that turns rows into logits; torch's own linear layer is handled faster. A module that never
    holds all its logits together brings its own method `cross_entropy`.
    """
    if hasattr(output, "cross_entropy"):
        return cast(Losses, output.cross_entropy)(hidden_ND, labels_N, smoothing)
    if _is_plain(output):
        return linear_cross_entropy(hidden_ND, output.weight, labels_N, smoothing, output.bias)
    with torch.autocast(hidden_ND.device.type, enabled=False):
        return _module_cross_entropy(output, in_full_precision(hidden_ND), labels_N, smoothing)
