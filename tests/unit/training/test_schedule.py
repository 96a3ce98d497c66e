import pytest

from heedful.training.schedule import ScheduleConfig, learning_rate


def test_the_papers_equation_3() -> None:
    config = ScheduleConfig("inverse_square_root", None, 4000)
    for step in (1, 17, 4000, 100_003):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(config, 512, step, None) == pytest.approx(expected)


def test_a_given_rate_is_the_peak_at_the_end_of_the_warm_up() -> None:
    config = ScheduleConfig("inverse_square_root", 0.003, 500)
    assert learning_rate(config, 512, 500, None) == pytest.approx(0.003)
    assert learning_rate(config, 512, 250, None) == pytest.approx(0.0015)
    assert learning_rate(config, 512, 2000, None) == pytest.approx(0.0015)


def test_decay_rises_and_then_falls_to_zero_at_the_end() -> None:
    config = ScheduleConfig("decay", 0.01, warmup_share=0.1)
    rates = [learning_rate(config, 512, 1, share / 100) for share in range(101)]
    assert 0 < rates[0] < 0.001
    assert max(rates) == pytest.approx(0.01, rel=0.02)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == 0.0
