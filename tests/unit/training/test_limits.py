from heedful.training.config import LimitConfig, SavingConfig
from heedful.training.limits import Clock, Limit
from heedful.training.run_state import Position, RunState


def at(step: int = 0, epoch: int = 0, batch: int = 0, since_best: int = 0) -> RunState:
    return RunState(Position(step, epoch, batch), validations_since_best=since_best)


def test_steps() -> None:
    limit = Limit(LimitConfig(steps=20), SavingConfig(), Clock())
    assert limit.progress(at(5), 7) == 0.25
    assert not limit.over(at(19))
    assert limit.over(at(20))


def test_epochs_count_the_batches_in_them() -> None:
    limit = Limit(LimitConfig(epochs=2), SavingConfig(), Clock())
    assert limit.progress(at(epoch=1, batch=3), 6) == 0.75
    assert not limit.over(at(epoch=1, batch=5))
    assert limit.over(at(epoch=2))


def test_a_budget_counts_the_time_of_earlier_starts_and_keeps_a_reserve() -> None:
    clock = Clock()
    limit = Limit(LimitConfig(budget="100s"), SavingConfig(), clock)
    assert limit.progress(at(), 1) < 0.01
    clock.before = 45.0
    limit.reserve = 10.0
    assert 0.5 <= limit.progress(at(), 1) < 0.51
    clock.before = 90.0
    assert limit.over(at())


def test_the_preparation_takes_time_but_no_share_of_the_training() -> None:
    clock = Clock()
    limit = Limit(LimitConfig(budget="100s"), SavingConfig(), clock)
    clock.before = 40.0
    state = at()
    state.began = 40.0
    assert 0 <= limit.progress(state, 1) < 0.01
    clock.before = 70.0
    assert 0.5 <= limit.progress(state, 1) < 0.51
    clock.before = 100.0
    assert limit.over(state)


def test_without_limit_patience_decides() -> None:
    limit = Limit(LimitConfig(patience=3), SavingConfig(validate_every_steps=50), Clock())
    assert limit.progress(at(1000), 1) is None
    assert not limit.over(at(since_best=2))
    assert limit.over(at(since_best=3))


def test_validations_are_spread_over_the_run() -> None:
    limit = Limit(LimitConfig(steps=100), SavingConfig(validations=4), Clock())
    state = at()
    due = [step for step in range(1, 101) if limit.pass_validation(state, step / 100)]
    assert due == [25, 50, 75, 100]


def test_a_validation_that_fell_due_between_two_steps_is_not_missed() -> None:
    limit = Limit(LimitConfig(budget="100s"), SavingConfig(validations=4), Clock())
    state = at()
    assert [limit.pass_validation(state, share) for share in (0.2, 0.24, 0.27, 0.4, 0.9, 0.95)] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]


def test_validations_take_a_small_share_of_a_budget() -> None:
    clock = Clock()
    limit = Limit(LimitConfig(budget="1000s"), SavingConfig(validations=10), clock)
    state = at()
    assert limit.pass_validation(state, 0.1)
    state.validating, limit.reserve = 8.0, 10.0
    clock.before = 300.0
    assert not limit.pass_validation(state, 0.3)
    clock.before = 361.0
    assert limit.pass_validation(state, 0.361)
    assert not limit.pass_validation(state, 0.362)


def test_validations_by_steps() -> None:
    limit = Limit(LimitConfig(), SavingConfig(validate_every_steps=7), Clock())
    assert [step for step in range(1, 22) if limit.pass_validation(at(step), None)] == [7, 14, 21]
