from dataclasses import replace

import pytest

from heedful.errors import UserError
from heedful.models.families import FAMILIES
from heedful.models.parameter_count import counted
from heedful.presets import PRESETS
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import OrderConfig, XLNetConfig


@pytest.mark.parametrize(("preset", "millions"), [("xlnet_base", 117), ("xlnet_large", 361)])
def test_the_published_numbers_of_parameters(preset: str, millions: int) -> None:
    model = FAMILIES["xlnet"].build_without_memory(PRESETS[preset]().model)
    assert counted(model) == pytest.approx(millions * 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 21}, "must be even"),
        ({"memory_length": 512}, "memory_length is 512, but must be at least 0 and below 512"),
        ({"stack": StackConfig(norm="pre")}, "stack.norm is 'pre', but an xlnet model has 'post'"),
        ({"stack": StackConfig(attention=AttentionConfig(scoring="additive"))}, "scoring is 'additive'"),
        ({"stack": StackConfig(local_window=3)}, "local_window is 3"),
        ({"stack": StackConfig(attention=AttentionConfig(num_key_value_heads=4))}, "num_key_value_heads is 4"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(XLNetConfig(), **changes)


@pytest.mark.parametrize("changes", [{"predicted": 1.5}, {"left_to_right": -0.1}])
def test_shares_outside_their_range_are_refused(changes: dict) -> None:
    with pytest.raises(UserError, match=next(iter(changes))):
        OrderConfig(**changes)
