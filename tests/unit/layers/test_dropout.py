import pytest
import torch

from heedful.layers.dropout import Dropout, dropout, dropout_after, masks_so_far, seeded_dropout

CPU = torch.device("cpu")


@pytest.mark.parametrize("probability", [0.1, 0.25, 0.7])
def test_share_and_scale(probability: float) -> None:
    with seeded_dropout(1, CPU):
        dropped = dropout(torch.ones(317, 331), probability)
    share = (dropped == 0).float().mean().item()
    assert share == pytest.approx(round(probability * 256) / 256, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.02)
    assert dropped.unique().numel() == 2


def test_the_gradient_takes_the_same_mask() -> None:
    x = torch.randn(13, 17, requires_grad=True)
    with seeded_dropout(2, CPU):
        output = dropout(x, 0.5)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert torch.equal(gradient == 0, output == 0)
    assert torch.allclose(output, x * gradient)


def test_a_seed_fixes_the_mask_whatever_the_global_generator_does() -> None:
    masks = []
    for _ in range(2):
        torch.rand(7)
        with seeded_dropout(3, CPU):
            masks.append(dropout(torch.ones(5, 7, 11), 0.3))
    assert torch.equal(*masks)
    with seeded_dropout(4, CPU):
        assert not torch.equal(masks[0], dropout(torch.ones(5, 7, 11), 0.3))


def test_masks_go_on_where_another_process_had_come_to() -> None:
    x = torch.ones(7, 11, 13)
    with seeded_dropout(5, CPU):
        dropout(x, 0.3)
        state = masks_so_far().clone()
        expected = dropout(x, 0.3)
    with seeded_dropout(6, CPU), dropout_after(state):
        assert torch.equal(dropout(x, 0.3), expected)


def test_the_operation_for_compilers_draws_the_same_masks() -> None:
    x = torch.randn(7, 11, 13)
    with seeded_dropout(5, CPU):
        expected = [dropout(x, 0.3), dropout(x, 0.5)]
    with seeded_dropout(5, CPU):
        masks = [torch.ops.heedful.dropout_mask(x, threshold) for threshold in (77, 128)]
    assert all(torch.equal(x * mask, each) for mask, each in zip(masks, expected, strict=True))
    shape = torch.ops.heedful.dropout_mask(torch.empty(3, 5, dtype=torch.float64, device="meta"), 77)
    assert (shape.shape, shape.dtype) == ((3, 5), torch.float64)


def test_nothing_is_dropped_in_evaluation_or_at_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
