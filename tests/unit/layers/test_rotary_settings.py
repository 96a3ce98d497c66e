"""The base and the scalings of rotary positions."""

import math

import pytest
import torch

from heedful.errors import UserError
from heedful.layers.positions import RotaryPositions
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.rotary import RotaryConfig, RotaryScaling

SIZES = PositionSizes(44, 22, 31)
LLAMA3 = {"low_frequency_factor": 1.0, "high_frequency_factor": 4.0, "original_length": 8192}


def rates(base: float = 10000.0, **scaling: object) -> torch.Tensor:
    config = RotaryConfig(base=base, scaling=RotaryScaling(**scaling) if scaling else None)
    return RotaryPositions(SIZES, config).rates()


def test_wavelengths_are_powers_of_the_base() -> None:
    expected = [500000.0 ** (-2 * i / 22) for i in range(11)]
    torch.testing.assert_close(rates(500000.0), torch.tensor(expected, dtype=torch.float64))


def test_linear_scaling_is_the_same_as_nearer_positions() -> None:
    scaled = RotaryPositions(SIZES, RotaryConfig(scaling=RotaryScaling("linear", 3.0)))
    torch.testing.assert_close(scaled.cosines[21], RotaryPositions(SIZES).cosines[7])


def test_ntk_scaling_leaves_the_fastest_angle_and_divides_the_slowest() -> None:
    plain, scaled = rates(), rates(kind="ntk", factor=4.0)
    assert float(scaled[0]) == float(plain[0])
    assert float(plain[-1] / scaled[-1]) == pytest.approx(4.0)
    ratios = plain / scaled
    assert (ratios.diff() > 0).all()


@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_scalings_are_those_of_transformers(base: float) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    theirs = {"rope_theta": base, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    theirs |= {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
    config = LlamaConfig(hidden_size=44, num_attention_heads=2, rope_parameters=theirs)
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    found = rates(base, kind="llama3", factor=8.0, **LLAMA3)
    torch.testing.assert_close(found.float(), expected, rtol=1e-5, atol=0)
    config = LlamaConfig(
        hidden_size=44,
        num_attention_heads=2,
        rope_parameters={"rope_theta": base, "rope_type": "linear", "factor": 8.0},
    )
    expected, _ = ROPE_INIT_FUNCTIONS["linear"](config, torch.device("cpu"))
    torch.testing.assert_close(rates(base, kind="linear", factor=8.0).float(), expected, rtol=1e-5, atol=0)


def test_llama3_scaling_by_a_formula_written_once_more() -> None:
    plain, scaled = rates(500000.0).tolist(), rates(500000.0, kind="llama3", factor=8.0, **LLAMA3).tolist()
    kinds = set()
    for before, after in zip(plain, scaled, strict=True):
        wavelength = 2 * math.pi / before
        if wavelength < 8192 / 4:
            kinds.add("kept")
            assert after == before
        elif wavelength > 8192:
            kinds.add("divided")
            assert after == pytest.approx(before / 8)
        else:
            kinds.add("blended")
            smooth = (8192 / wavelength - 1) / 3
            assert after == pytest.approx((1 - smooth) * before / 8 + smooth * before)
    assert kinds == {"kept", "divided", "blended"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factor": 0.5}, "factor is 0.5"),
        ({"factor": 2.0, "original_length": 0}, "original_length is 0"),
        ({"factor": 2.0, "high_frequency_factor": 1.0}, "high_frequency_factor must be above"),
    ],
)
def test_wrong_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        RotaryScaling("llama3", **settings)
    with pytest.raises(UserError, match="base is 1"):
        RotaryConfig(base=1.0)
