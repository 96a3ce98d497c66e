import pytest

from heedful.errors import UserError
from heedful.tasks.translation.job import TranslationData
from heedful.training.config import LimitConfig, seconds
from heedful.training.resolve import check_settings
from heedful.training.run_config import RunConfig


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400)])
def test_times(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0m", "-5m", "30x"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="30m"):
        seconds(text)


@pytest.mark.parametrize("text", ["1", "45", "1.5", "1h30"])
def test_a_time_needs_a_unit(text: str) -> None:
    with pytest.raises(UserError, match="without a unit: write it as 90s, 30m or 1h30m"):
        LimitConfig(budget=text)


def test_two_limits_are_refused() -> None:
    with pytest.raises(UserError, match="only one of"):
        LimitConfig(steps=3, budget="5m")


def test_zero_steps_are_refused() -> None:
    with pytest.raises(UserError, match="at least 1"):
        LimitConfig(steps=0)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("model", "encoder", "dropout"), 1.0, "dropout is 1.0, but must be at least 0 and below 1"),
        (("model", "decoder", "num_layers"), 0, "num_layers is 0, but must be at least 1"),
        (("model", "decoder", "attention", "num_heads"), 0, "num_heads is 0"),
        (("model", "encoder", "feed_forward", "inner_width"), -4, "inner_width is -4"),
        (("training", "label_smoothing"), 1.5, "label_smoothing is 1.5"),
        (("training", "batches", "tokens_per_step"), 0, "tokens_per_step is 0"),
        (("training", "machine", "workers"), 0, "workers is 0"),
        (("training", "schedule", "warmup_share"), 1.0, "warmup_share is 1.0"),
        (("training", "parallel", "timeout_seconds"), 0.5, "timeout_seconds is 0.5"),
        (
            ("training", "parallel", "timeout_seconds"),
            1e300,
            r"timeout_seconds is 1e\+300, but must be .* below 1e\+07",
        ),
    ],
)
def test_values_out_of_range_are_refused(place: tuple[str, ...], value: float, message: str) -> None:
    settings: dict = {}
    inner = settings
    for key in place[:-1]:
        inner = inner.setdefault(key, {})
    inner[place[-1]] = value
    with pytest.raises(UserError, match=message):
        check_settings(RunConfig("out", TranslationData(), "translation_tiny", settings))
