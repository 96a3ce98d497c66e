import math

import pytest
import torch

from heedful.errors import UserError
from heedful.layers.positions import SCHEMES, LearnedPositions, RotaryPositions, SinusoidalPositions
from heedful.settings.position_scheme import PositionSizes


def test_sinusoids_follow_the_formula_of_the_paper() -> None:
    table = SinusoidalPositions(PositionSizes(10, 5, 13)).table
    for position in (0, 1, 12):
        for i in range(5):
            angle = position / 10000 ** (2 * i / 10)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_an_odd_width_is_fine() -> None:
    assert torch.isfinite(SinusoidalPositions(PositionSizes(7, 7, 5)).table).all()


def test_sinusoids_extend_without_changing() -> None:
    scheme = SinusoidalPositions(PositionSizes(6, 3, 11))
    before = scheme.table.clone()
    scheme.extend(29)
    assert scheme.table.shape == (29, 6)
    assert torch.equal(scheme.table[:11], before)


def test_learned_tables_interpolate_between_their_ends() -> None:
    scheme = LearnedPositions(PositionSizes(3, 3, 5))
    before = scheme.table.detach().clone()
    scheme.resize(9)
    assert scheme.table.shape == (9, 3)
    torch.testing.assert_close(scheme.table[::2].detach(), before)
    torch.testing.assert_close(scheme.table[1].detach(), (before[0] + before[1]) / 2)
    assert scheme.table.requires_grad


def test_rotary_scores_depend_on_the_distance_only() -> None:
    scheme = RotaryPositions(PositionSizes(8, 8, 31))
    query, key = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(1))

    def score(query_position: int, key_position: int) -> float:
        rotated_query = scheme.rotate(query, torch.tensor([query_position]))
        rotated_key = scheme.rotate(key, torch.tensor([key_position]))
        return float((rotated_query * rotated_key).sum())

    assert score(5, 2) == pytest.approx(score(23, 20), abs=1e-5)
    assert score(5, 2) != pytest.approx(score(5, 3), abs=1e-3)


@pytest.mark.parametrize("positions", [torch.arange(11), torch.tensor([[3], [1], [7]])])
def test_rotation_and_its_gradient_are_those_of_complex_numbers(positions: torch.Tensor) -> None:
    scheme = RotaryPositions(PositionSizes(30, 10, 13))
    generator = torch.Generator().manual_seed(1)
    packed_BTX = torch.randn(3, positions.shape[-1], 30, generator=generator, requires_grad=True)
    x_BHTK = packed_BTX.unflatten(-1, (3, 10)).transpose(1, 2)
    factor = torch.randn(x_BHTK.shape, generator=generator)

    turns = torch.complex(scheme.cosines, scheme.sines)[positions]
    turns = turns if positions.dim() == 1 else turns[:, None]
    turned = torch.complex(*x_BHTK.chunk(2, dim=-1)) * turns
    expected = torch.cat([turned.real, turned.imag], dim=-1)
    rotated = scheme.rotate(x_BHTK, positions)
    torch.testing.assert_close(rotated, expected)
    gradients = (torch.autograd.grad((each * factor).sum(), packed_BTX) for each in (rotated, expected))
    torch.testing.assert_close(*gradients)


def test_rotary_angles_are_squeezed_into_the_trained_range() -> None:
    scheme = RotaryPositions(PositionSizes(8, 8, 16))
    last = scheme.cosines[8].clone()
    scheme.resize(32)
    torch.testing.assert_close(scheme.cosines[16], last)
    scheme.resize(8)  # a shorter use needs no change
    torch.testing.assert_close(scheme.cosines, RotaryPositions(PositionSizes(8, 8, 16)).cosines[:8])


def test_rotary_needs_an_even_width() -> None:
    with pytest.raises(UserError, match="even key width"):
        RotaryPositions(PositionSizes(9, 3, 5))


@pytest.mark.parametrize("name", SCHEMES)
def test_one_row_at_its_own_position_equals_the_whole_sequence(name: str) -> None:
    torch.manual_seed(1)
    scheme = SCHEMES[name](PositionSizes(12, 4, 17))
    x = torch.randn(3, 17, 12)
    heads = torch.randn(3, 5, 17, 4)
    whole, turned = scheme.add(x, torch.arange(17)), scheme.rotate(heads, torch.arange(17))
    rows = torch.tensor([2, 13, 7])
    picked = torch.arange(3)
    assert torch.equal(scheme.add(x[picked, rows][:, None], rows[:, None])[:, 0], whole[picked, rows])
    assert torch.equal(
        scheme.rotate(heads[picked, :, rows][:, :, None], rows[:, None])[:, :, 0], turned[picked, :, rows]
    )
