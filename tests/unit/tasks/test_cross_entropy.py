from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from heedful.layers.dropout import Dropout, seeded_dropout
from heedful.tasks import cross_entropy
from heedful.tasks.cross_entropy import linear_cross_entropy, output_cross_entropy

N, D, V = 53, 7, 31


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("largest", [1.0, 30.0])  # from some row on, large logits need their largest subtracted
@pytest.mark.parametrize("with_bias", [False, True])
def test_it_equals_torch_in_double_precision(
    smoothing: float, largest: float, with_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "FEWEST_PIECE_ROWS", 1)
    monkeypatch.setattr(cross_entropy, "ELEMENTS_PER_PIECE", 11 * V)  # several pieces, the last one smaller
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(N, D, generator=generator) * torch.linspace(1.0, largest, N)[:, None]
    weight, bias = torch.randn(V, D, generator=generator), torch.randn(V, generator=generator)
    inputs = [each.requires_grad_() for each in (hidden, weight, bias)[: 2 + with_bias]]
    labels = torch.randint(0, V, (N,), generator=generator)
    loss, plain = linear_cross_entropy(*inputs[:2], labels, smoothing, *inputs[2:])
    gradients = torch.autograd.grad(3 * loss, inputs)

    exact = [each.detach().double().requires_grad_() for each in inputs]
    logits = F.linear(*exact)
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(plain.double(), F.cross_entropy(logits, labels, reduction="sum"), rtol=1e-5, atol=0)
    with torch.no_grad():  # a shorter way, with the same losses
        shorter = linear_cross_entropy(*inputs[:2], labels, smoothing, *inputs[2:])
        torch.testing.assert_close(shorter, (loss, plain), rtol=1e-5, atol=0)
    for gradient, right in zip(gradients, torch.autograd.grad(3 * expected, exact), strict=True):
        torch.testing.assert_close(gradient.double(), right, rtol=1e-4, atol=1e-5 * largest)


@pytest.mark.parametrize("logits", [(500.0, -500.0), (-500.0, -1500.0)])
def test_logits_that_would_overflow_or_underflow_do_not(logits: tuple[float, float]) -> None:
    weight = torch.tensor(logits)[:, None].requires_grad_()
    loss, _ = linear_cross_entropy(torch.ones(3, 1), weight, torch.tensor([0, 0, 1]), 0.0)
    assert loss.item() == pytest.approx(1000.0)
    (gradient,) = torch.autograd.grad(loss, weight)
    assert gradient.flatten().tolist() == [1.0, -1.0]


def test_every_row_is_in_a_piece_and_the_pieces_are_of_about_the_same_size() -> None:
    for count in (1, 127, 261, 263, 1009):
        rows = cross_entropy.rows_per_piece(count, 8000, torch.device("cpu"))
        sizes = [len(piece) for piece in torch.empty(count).split(rows)]
        assert max(sizes) <= 262
        assert max(sizes) - min(sizes) < len(sizes)


def test_without_any_label_there_is_no_loss_and_no_gradient() -> None:
    inputs = [torch.randn(shape, requires_grad=True) for shape in ((0, D), (V, D), (V,))]
    loss, plain = linear_cross_entropy(*inputs[:2], torch.zeros(0, dtype=torch.long), 0.1, inputs[2])
    assert loss.item() == plain.item() == 0.0
    assert not any(gradient.any() for gradient in torch.autograd.grad(loss, inputs))


class LowRank(nn.Module):
    """An output layer that is frozen, and a small trained one beside it, with dropout before it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down, self.up = nn.Linear(D, 2, bias=False), nn.Linear(2, V, bias=False)
        self.dropout = Dropout(0.25)

    def forward(self, rows_ND: Tensor) -> Tensor:
        return self.linear(rows_ND) + self.up(self.down(self.dropout(rows_ND)))


def example(rows: int = N) -> tuple[nn.Linear, Tensor, Tensor]:
    torch.manual_seed(3)
    return nn.Linear(D, V), torch.randn(rows, D, requires_grad=True), torch.randint(0, V, (rows,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [0, 1, 3 * 128 + 5])
def test_a_layer_that_is_watched_gives_what_it_gives_alone(smoothing: float, rows: int) -> None:
    output, hidden, labels = example(rows)
    inputs = [hidden, *output.parameters()]
    losses = output_cross_entropy(output, hidden, labels, smoothing)
    assert type(losses[0].grad_fn).__name__ == "_LinearCrossEntropyBackward"
    alone = torch.autograd.grad(losses[0], inputs)
    seen = []
    output.register_forward_hook(lambda module, arguments, logits: seen.append(len(logits)))
    watched = output_cross_entropy(output, hidden, labels, smoothing)
    assert sum(seen) == rows and max(seen) <= 128
    torch.testing.assert_close(watched, losses, rtol=1e-5, atol=1e-4)
    for gradient, expected in zip(torch.autograd.grad(watched[0], inputs), alone, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(
            output_cross_entropy(output, hidden, labels, smoothing), losses, rtol=1e-5, atol=1e-4
        )


def test_a_wrapped_layer_is_trained_as_if_its_logits_were_there_at_once() -> None:
    output, hidden, labels = example(300)
    wrapped = LowRank(output)
    trained = [hidden, *(each for each in wrapped.parameters() if each.requires_grad)]
    with seeded_dropout(5, torch.device("cpu")):
        loss, _ = output_cross_entropy(wrapped, hidden, labels, 0.1)
        found = torch.autograd.grad(loss, trained)
    with seeded_dropout(5, torch.device("cpu")):
        logits = torch.cat([wrapped(piece) for piece in hidden.split(128)])
        expected = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)
    for gradient, right in zip(found, torch.autograd.grad(expected, trained), strict=True):
        torch.testing.assert_close(gradient, right, rtol=1e-4, atol=1e-5)


def attach_hook(output: nn.Linear) -> nn.Module:
    output.register_full_backward_hook(lambda *_: None)
    return output


def replace_forward(output: nn.Linear) -> nn.Module:
    output.forward = lambda rows: F.linear(rows, output.weight, output.bias)  # type: ignore[method-assign]
    return output


def compile_in_place(output: nn.Linear) -> nn.Module:
    output.compile(backend="eager")
    return output


@pytest.mark.parametrize(
    "changed",
    [attach_hook, replace_forward, compile_in_place, nn.Sequential, spectral_norm],
    ids=lambda each: each.__name__,
)
def test_whatever_is_done_to_a_layer_it_is_called(changed: Callable[[nn.Linear], nn.Module]) -> None:
    output, hidden, labels = example()
    loss, _ = output_cross_entropy(changed(output), hidden, labels, 0.0)
    assert type(loss.grad_fn).__name__ != "_LinearCrossEntropyBackward"
