import pytest

from heedful.errors import UserError
from heedful.training.config import LimitConfig, seconds


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("45", 45), ("1.5h", 5400)]
)
def test_times(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0m", "-5m", "30x"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="30m"):
        seconds(text)


def test_two_limits_are_refused() -> None:
    with pytest.raises(UserError, match="only one of"):
        LimitConfig(steps=3, budget="5m")


def test_zero_steps_are_refused() -> None:
    with pytest.raises(UserError, match="at least 1"):
        LimitConfig(steps=0)
