"""The loss of an output layer that is split over the vocabulary: no process ever has the logits of all tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from heedful.tasks.cross_entropy import in_full_precision, rows_per_piece


class SplitVocabulary(nn.Linear):
    """An output layer whose rows, one per token, lie in several processes."""

    mesh: DeviceMesh

    @staticmethod
    def take_over(output: nn.Linear, mesh: DeviceMesh) -> None:
        """Make an output layer whose parameters are already split compute its loss in shares."""
        output.__class__ = SplitVocabulary
        assert isinstance(output, SplitVocabulary)
        output.mesh = mesh

    def cross_entropy(self, hidden_ND: Tensor, labels_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """The summed loss with label smoothing and without, as `output_cross_entropy` gives them."""
        assert isinstance(self.weight, DTensor)
        weight_XD = self.weight.to_local()
        bias_X = self.bias.to_local() if isinstance(self.bias, DTensor) else None
        with torch.autocast(hidden_ND.device.type, enabled=False):
            return _SplitCrossEntropy.apply(  # type: ignore[no-untyped-call]
                in_full_precision(hidden_ND), weight_XD, bias_X, labels_N, smoothing, self.mesh, self.out_features
            )


class _SplitCrossEntropy(torch.autograd.Function):
    """Computes the gradients along with the loss, a piece of the rows at a time, as `_LinearCrossEntropy` does.

    X are the tokens of this process among the V of all. For each piece the processes exchange one number per row, the
    logarithm of their own sum of exp(logits); for all rows, two sums and finally the gradient of the rows.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_XD: Tensor,
        bias_X: Tensor | None,
        labels_N: Tensor,
        smoothing: float,
        mesh: DeviceMesh,
        size_V: int,
    ) -> tuple[Tensor, Tensor]:
        group, first = mesh.get_group(), mesh.get_local_rank() * -(-size_V // mesh.size())
        own_N = (labels_N >= first) & (labels_N < first + len(weight_XD))
        own_labels_N = torch.where(own_N, labels_N - first, 0)
        # One size of pieces for all processes, whose shares may differ by a few tokens.
        rows = rows_per_piece(len(labels_N), -(-size_V // mesh.size()), hidden_ND.device)
        hidden_gradient, weight_gradient = torch.empty_like(hidden_ND), torch.zeros_like(weight_XD)
        bias_gradient = None if bias_X is None else torch.zeros_like(bias_X)
        log_total = hidden_ND.new_zeros(())
        for hidden, gradient in zip(hidden_ND.split(rows), hidden_gradient.split(rows), strict=True):
            logits = hidden @ weight_XD.T if bias_X is None else torch.addmm(bias_X, hidden, weight_XD.T)
            log_total_N1 = _log_total(logits, mesh.size(), group)
            powers = logits.sub_(log_total_N1).exp_()
            torch.mm(powers, weight_XD, out=gradient)
            weight_gradient.addmm_(powers.T, hidden)
            if bias_gradient is not None:
                bias_gradient.add_(powers.sum(0))
            log_total = log_total + log_total_N1.sum()
        even, kept_N1 = smoothing / size_V, own_N.to(hidden_ND.dtype)[:, None] * (1.0 - smoothing)
        chosen_ND = weight_XD[own_labels_N] * own_N[:, None]
        hidden_gradient.sub_(chosen_ND, alpha=1 - smoothing).sub_(weight_XD.sum(0), alpha=even)
        weight_gradient.index_add_(0, own_labels_N, -kept_N1 * hidden_ND).sub_(hidden_ND.sum(0), alpha=even)
        chosen, mean = (hidden_ND * chosen_ND).sum(), (hidden_ND @ weight_XD.sum(0)).sum() / size_V
        if bias_X is not None:
            assert bias_gradient is not None
            bias_gradient.index_add_(0, own_labels_N, -kept_N1[:, 0]).sub_(even * len(labels_N))
            chosen, mean = chosen + (bias_X[own_labels_N] * own_N).sum(), mean + len(labels_N) * bias_X.sum() / size_V
        sums = torch.stack([chosen, mean])
        dist.all_reduce(sums, group=group)
        dist.all_reduce(hidden_gradient, group=group)
        ctx.save_for_backward(hidden_gradient, weight_gradient, bias_gradient)
        plain = log_total - sums[0]
        ctx.mark_non_differentiable(plain)
        return plain + smoothing * (sums[0] - sums[1]), plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_input = (each if each is None else each * gradients[0] for each in ctx.saved_tensors)
        return (*by_input, None, None, None, None)


def _log_total(logits_NX: Tensor, size: int, group: Any) -> Tensor:
    """N 1: the logarithm of the sum of exp(logits) over the tokens of all processes."""
    own_N = logits_NX.logsumexp(1)
    all_PN = own_N.new_empty(size, len(own_N))
    dist.all_gather(list(all_PN.unbind()), own_N, group=group)
    return all_PN.logsumexp(0)[:, None]
