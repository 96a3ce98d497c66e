import math

import pytest
import torch

from heedful.layers import additive_scores as module
from heedful.layers.additive_scores import additive_scores, plain_additive_scores

B, H, T, S, K = 5, 3, 7, 11, 13


def inputs(dtype: torch.dtype = torch.float32, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(B, H, T, K), (B, H, S, K), (H, K)]
    tensors = [torch.randn(shape, generator=generator, dtype=dtype) * scale for shape in shapes]
    return [tensor.requires_grad_() for tensor in tensors]


def test_scores_are_those_of_plain_loops() -> None:
    query, key, vector = (tensor.tolist() for tensor in inputs())
    scores = additive_scores(*inputs()).tolist()
    for b, h, t, s in [(0, 0, 0, 0), (1, 2, 3, 5), (4, 1, 6, 10), (2, 2, 0, 7)]:
        expected = sum(vector[h][k] * math.tanh(query[b][h][t][k] + key[b][h][s][k]) for k in range(K))
        assert scores[b][h][t][s] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("elements", [1, 2 * H * T * S * K, 10**9])
def test_the_size_of_the_pieces_changes_nothing(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ELEMENTS_PER_PIECE", elements)
    gradients = []
    for score in (additive_scores, plain_additive_scores):
        tensors = inputs(torch.float64)
        scores = score(*tensors)
        weights = torch.linspace(-1, 1, scores.numel(), dtype=torch.float64).view_as(scores)
        gradients.append([scores, *torch.autograd.grad((scores * weights).sum(), tensors)])
    for own, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(own, plain, atol=1e-12, rtol=0)


def test_the_gradient_is_that_of_the_scores() -> None:
    query, key, vector = (tensor.detach() for tensor in inputs(torch.float64))
    few = query[:2, :2, :3, :5], key[:2, :2, :4, :5], vector[:2, :5]
    assert torch.autograd.gradcheck(additive_scores, [each.clone().requires_grad_() for each in few])


def test_values_whose_powers_would_overflow_give_finite_scores() -> None:
    tensors = inputs(scale=60.0)
    scores = additive_scores(*tensors)
    torch.testing.assert_close(scores, plain_additive_scores(*tensors))
    for gradient in torch.autograd.grad(scores.sum(), tensors):
        assert torch.isfinite(gradient).all()


def test_a_row_has_the_same_bits_in_any_batch() -> None:
    query, key, vector = (tensor.detach() for tensor in inputs())
    together = additive_scores(query, key, vector)
    for row in range(B):
        alone = additive_scores(query[row : row + 1].clone(), key[row : row + 1].clone(), vector)
        assert torch.equal(alone[0], together[row])
