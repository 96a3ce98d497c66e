"""The training loop on a clock that only a step and a validation move: what takes minutes is over at once."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.tasks.task import Validation
from heedful.training.config import BatchConfig, LimitConfig, MachineConfig, SavingConfig, TrainingConfig
from heedful.training.extension import Extension
from heedful.training.limits import Clock
from heedful.training.loop import Trainer
from heedful.training.schedule import ScheduleConfig
from heedful.weights_writer import WeightStream
from linear_task import Rows, checkpoint_steps, rows_of

pytestmark = pytest.mark.usefixtures("no_flushing")


class Killed(BaseException):
    """Stands for the moment at which a process is killed."""


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made_up = Time()
    monkeypatch.setattr(time, "monotonic", made_up.monotonic)
    return made_up


class SlowTask:
    """Fits a linear layer to zero, in steps of 8 rows and of `step_seconds`; each validation takes its own time."""

    unit, width, largest_loss = "rows", 5, 1e9

    def __init__(
        self, clock: Time, step_seconds: float, validation_seconds: Callable[[], float], expected_seconds: float = 1.0
    ) -> None:
        self.clock, self.step_seconds, self.validation_seconds = clock, step_seconds, validation_seconds
        torch.manual_seed(1)
        self.model = nn.Linear(5, 3)
        self.losses: Callable[[], float] | None = None
        self.steps = 0
        # As many rows as the steps of so many seconds have.
        self.validation_tokens = round(expected_seconds / step_seconds * 8)

    def epoch_batches(self, epoch: int) -> list[Any]:
        return [np.arange(8)] * 37

    def collate(self, indices: Any) -> Rows:
        return Rows(torch.ones(len(indices), 5))

    def loss(self, model: nn.Linear, batch: Rows) -> tuple[Tensor, Tensor]:
        self.clock.seconds += self.step_seconds
        self.steps += 1
        loss = model(batch.values).square().sum()
        return loss, loss.detach()

    def validate(self) -> Validation:
        self.clock.seconds += self.validation_seconds()
        return Validation(self.losses() if self.losses else self.model(torch.ones(1, 5)).square().sum().item())

    def read_examples(self, model: nn.Module) -> Iterator[None]:
        return iter(())


class Events:
    """Follows a run, and ends it at a step if it is to be killed there."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        if row["step"] == self.kill_at:
            raise Killed

    def validation(self, row: dict[str, Any], examples: list[dict[str, str]]) -> None:
        pass

    message = validation


def trainer(
    folder: Path,
    task: SlowTask,
    limit: LimitConfig,
    save_model: Callable[[dict[str, float], WeightStream], None] = lambda scores, weights: None,
    kill_at: int | None = None,
    **settings: Any,
) -> Trainer[Rows]:
    config = TrainingConfig(
        limit,
        BatchConfig(8, 8),
        MachineConfig("cpu", 1, 1),
        schedule=ScheduleConfig("decay", 0.01),
        **settings,
    )
    folder.mkdir(exist_ok=True)
    made = Trainer(task.model, task, config, folder, Events(kill_at), Clock(), save_model)
    # On this clock, what is written meanwhile would seem to take as long as the steps that are over at once.
    made.saver.start = made.saver.save
    return made


@pytest.mark.parametrize("minutes", [1, 2, 3, 10])
@pytest.mark.parametrize(("shortest", "longest"), [(0.1, 0.2), (3, 9), (8, 14)])
def test_a_budget_holds_what_is_promised(
    tmp_path: Path, clock: Time, minutes: int, shortest: float, longest: float
) -> None:
    draw = random.Random(1)
    task = SlowTask(clock, 0.5 if minutes < 10 else 2.0, lambda: draw.uniform(shortest, longest), longest)
    started = clock.seconds
    assert trainer(tmp_path, task, LimitConfig(budget=f"{minutes}m")).run()

    took = clock.seconds - started
    assert 0.8 * 60 * minutes < took < 60 * minutes + 5
    validations = rows_of(tmp_path, "validation")
    assert sum(row["seconds"] for row in validations[:-1]) <= 60 * minutes / 20
    assert len(validations) == 10 if longest < 1 else 1 <= len(validations) <= 10
    assert validations[-1]["elapsed"] == pytest.approx(took)
    rates = [row["learning_rate"] for row in rows_of(tmp_path, "train")]
    top = rates.index(max(rates))
    assert top < 0.1 * len(rates) and max(rates) == pytest.approx(0.01, rel=0.05)
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] < 0.05 * max(rates)


def test_the_rate_does_not_rise_again_after_a_last_validation_that_took_less_than_expected(
    tmp_path: Path, clock: Time
) -> None:
    durations = iter([9.0, 3.0, 3.0, 3.0])
    assert trainer(tmp_path, SlowTask(clock, 1.0, lambda: next(durations), 9.0), LimitConfig(budget="5m")).run()
    rates = [row["learning_rate"] for row in rows_of(tmp_path, "train")]
    top = rates.index(max(rates))
    assert rates[top:] == sorted(rates[top:], reverse=True)
    validations = rows_of(tmp_path, "validation")
    assert len(validations) == 2 and validations[-1]["step"] == len(rates)


def test_the_first_checkpoint_comes_early_and_little_is_ever_lost(tmp_path: Path, clock: Time) -> None:
    for killed_at in (5, 50, 200):
        task = SlowTask(clock, 1.0, lambda: 1.0)
        folder = tmp_path / str(killed_at)
        with pytest.raises(Killed):
            trainer(folder, task, LimitConfig(steps=100_000), kill_at=killed_at).run()
        assert checkpoint_steps(folder) and checkpoint_steps(folder)[-1] >= killed_at - 6


def test_checkpoints_that_take_long_take_a_small_share_of_the_time(
    tmp_path: Path, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.training import replica

    save, saved = replica.save_checkpoint, []

    def slow_save(*arguments: Any) -> Path:
        clock.seconds += 20.0
        saved.append(clock.seconds)
        return save(*arguments)

    monkeypatch.setattr(replica, "save_checkpoint", slow_save)
    task, started = SlowTask(clock, 6.0, lambda: 1.0), clock.seconds
    with pytest.raises(Killed):
        trainer(tmp_path, task, LimitConfig(steps=100_000), kill_at=900).run()
    assert saved[0] - started < 30
    assert 20.0 * len(saved[1:]) <= 0.04 * (clock.seconds - started)
    assert len(saved) > 5


def test_an_interval_that_was_asked_for_is_kept(tmp_path: Path, clock: Time) -> None:
    task = SlowTask(clock, 1.0, lambda: 1.0)
    with pytest.raises(Killed):
        trainer(
            tmp_path, task, LimitConfig(steps=100_000), kill_at=75, saving=SavingConfig(checkpoint_seconds=30.0)
        ).run()
    assert checkpoint_steps(tmp_path) == [32, 62]


def test_an_extended_budget_goes_on_with_the_schedule_of_the_longer_one(tmp_path: Path, clock: Time) -> None:
    task = SlowTask(clock, 0.5, lambda: 0.2)
    assert trainer(tmp_path, task, LimitConfig(budget="1m")).run()
    first = len(rows_of(tmp_path, "train"))
    again = trainer(tmp_path, task, LimitConfig(budget="3m"))
    again.extension = Extension(first)
    assert again.resume() and again.run()
    rates = [row["learning_rate"] for row in rows_of(tmp_path, "train")][first:]
    assert len(rates) > 1.8 * first
    assert rates[0] < 0.1 * max(rates)
    assert max(rates) == pytest.approx(0.01 * (1 - 1 / 3) / 0.95, rel=0.1)
    top = rates.index(max(rates))
    assert top < 0.1 * len(rates)
    assert rates[top:] == sorted(rates[top:], reverse=True) and rates[-1] < 0.05 * max(rates)
    third = trainer(tmp_path, task, LimitConfig(budget="3m"))
    third.extension = Extension(first)
    assert third.resume() and third.run()
    assert len(rows_of(tmp_path, "train")) == first + len(rates)


def test_an_extended_budget_that_the_start_uses_up_still_gives_a_step(tmp_path: Path, clock: Time) -> None:
    task = SlowTask(clock, 0.5, lambda: 0.2)
    assert trainer(tmp_path, task, LimitConfig(budget="1m")).run()
    first = task.steps
    for _ in range(2):  # what was done once is not done again
        again = trainer(tmp_path, task, LimitConfig(budget="65s"))
        again.extension = Extension(first)
        clock.seconds += 7
        assert again.resume() and again.run() and again.state.finished
        assert [row["step"] for row in rows_of(tmp_path, "validation")][-2:] == [first, first + 1]
    assert [row["step"] for row in rows_of(tmp_path, "train")] == [*range(1, first + 2)]


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
@pytest.mark.parametrize("before_it_is_written", [True, False])
def test_a_budget_run_killed_as_it_saves_its_best_model_keeps_that_model(
    tmp_path: Path, clock: Time, ema_decay: float, before_it_is_written: bool
) -> None:
    task = SlowTask(clock, 0.4, lambda: 0.1)
    settings = {"ema_decay": ema_decay, "saving": SavingConfig(validations=4)}
    losses = iter([3.0, 1.0, 2.0, 2.5, 2.6])
    task.losses = lambda: next(losses)
    model_folder: dict[str, Any] = {}
    wanted: dict[str, Tensor] = {}

    def save_model(scores: dict[str, float], weights: WeightStream) -> None:
        found = dict(weights.tensors)["weight"].detach().clone()
        if scores["loss"] == 1.0:
            wanted.setdefault("weights", found)
        if scores["loss"] == 1.0 and kill and before_it_is_written:
            raise Killed
        model_folder.update(scores, weights=found)
        if scores["loss"] == 1.0 and kill:
            raise Killed

    kill = True
    with pytest.raises(Killed):
        trainer(tmp_path, task, LimitConfig(budget="1m"), save_model, **settings).run()
    assert not (before_it_is_written and model_folder["loss"] == 1.0)
    kill = False
    again = trainer(tmp_path, task, LimitConfig(budget="1m"), save_model, **settings)
    assert again.resume()
    # What comes next lies between what the folder had before, and what it has.
    assert again.run()
    assert model_folder["loss"] == 1.0
    assert torch.equal(model_folder["weights"], wanted["weights"])
    assert min(row["loss"] for row in rows_of(tmp_path, "validation")) == 1.0


@pytest.mark.parametrize("validations", [1, 5])
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_budget_that_runs_out_between_two_starts_ends_with_a_validation_of_the_last_step(
    tmp_path: Path, clock: Time, validations: int, how: str
) -> None:
    kept: list[Tensor] = []

    def save_model(scores: dict[str, float], weights: WeightStream) -> None:
        kept.append(dict(weights.tensors)["weight"].detach().clone())

    limit, settings = LimitConfig(budget="1m"), {"saving": SavingConfig(validations, checkpoint_seconds=0.0)}
    kill_at = 110 if how == "killed" else None
    first = trainer(tmp_path, SlowTask(clock, 0.5, lambda: 0.1), limit, save_model, kill_at, **settings)
    if how == "stopped":
        end = clock.seconds + 54.9
        first.stop_requested = lambda: clock.seconds > end
        assert not first.run()
    else:
        with pytest.raises(Killed):
            first.run()
    task = SlowTask(clock, 0.5, lambda: 0.1)
    again = trainer(tmp_path, task, limit, save_model, **settings)
    clock.seconds += 7  # to start takes what was left of the budget
    assert again.resume() and again.run() and again.state.finished
    assert task.steps == 0
    last = checkpoint_steps(tmp_path)[-1]
    measured = [row["step"] for row in rows_of(tmp_path, "validation")]
    assert measured == again.state.validation_steps and measured[-1] == last > 100
    assert torch.equal(kept[-1], task.model.weight)
    third = trainer(tmp_path, SlowTask(clock, 0.5, lambda: 0.1), limit, save_model, **settings)
    assert third.resume() and third.run()
    assert len(rows_of(tmp_path, "validation")) == len(measured)
