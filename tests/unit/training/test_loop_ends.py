"""How the training loop comes to an end: by its limit, because it was asked to, or because something is wrong."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.tasks.task import Validation
from heedful.training.config import BatchConfig, LimitConfig, MachineConfig, SavingConfig, TrainingConfig
from heedful.training.limits import Clock
from heedful.training.loop import Trainer
from heedful.training.schedule import ScheduleConfig
from linear_task import Rows, checkpoint_steps, rows_of

pytestmark = pytest.mark.usefixtures("no_flushing")


class LineTask:
    """Fits a linear layer to zero in epochs of `batches` steps; at a step the loss can be made another one."""

    unit, width, largest_loss, validation_tokens = "rows", 5, 50.0, 8

    def __init__(self, batches: int = 4, factors: dict[int, float] | None = None) -> None:
        torch.manual_seed(1)
        self.model = nn.Linear(5, 3)
        self.batches, self.factors, self.steps = batches, factors or {}, 0
        self.losses: Iterator[float] | None = None

    def epoch_batches(self, epoch: int) -> list[Any]:
        return [np.arange(8)] * self.batches

    def collate(self, indices: Any) -> Rows:
        return Rows(torch.ones(len(indices), 5))

    def loss(self, model: nn.Module, batch: Rows) -> tuple[Tensor, Tensor]:
        self.steps += 1
        loss = model(batch.values).square().sum() * self.factors.get(self.steps, 1.0)
        return loss, loss.detach()

    def validate(self) -> Validation:
        return Validation(next(self.losses) if self.losses else 1.0)

    def read_examples(self, model: nn.Module) -> Iterator[None]:
        return iter(())


class Messages:
    """Keeps what the loop says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        pass

    def validation(self, row: dict[str, Any], examples: list[dict[str, str]]) -> None:
        pass


def trainer(
    folder: Path, task: LineTask, save: Callable[[dict[str, float], Any], None] = lambda *_: None, **settings: Any
) -> Trainer[Rows]:
    usual = {"limit": LimitConfig(steps=6), "saving": SavingConfig(2, checkpoint_seconds=0.0)}
    settings = {**usual, "schedule": ScheduleConfig("decay", 0.01), **settings}
    config = TrainingConfig(
        batches=BatchConfig(8, 8),
        machine=MachineConfig("cpu", 1, 1),
        **settings,
    )
    folder.mkdir(exist_ok=True)
    return Trainer(task.model, task, config, folder, Messages(), Clock(), save)


def test_it_takes_its_steps_and_validates_as_often_as_asked(tmp_path: Path) -> None:
    saved: list[dict[str, float]] = []
    task = LineTask()
    task.losses = iter([2.0, 3.0])
    assert trainer(tmp_path, task, lambda scores, _: saved.append(scores)).run()
    assert [(row["step"], row["epoch"]) for row in rows_of(tmp_path, "train")] == [
        (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1)
    ]  # fmt: skip
    assert [row["step"] for row in rows_of(tmp_path, "validation")] == [3, 6]
    assert saved == [{"loss": 2.0}]  # the second one was worse
    losses = [row["loss"] for row in rows_of(tmp_path, "train")]
    assert losses == sorted(losses, reverse=True)


def test_asked_to_stop_it_ends_its_step_saves_and_goes_on_later(tmp_path: Path) -> None:
    task = LineTask()
    stopped = trainer(tmp_path, task)
    stopped.stop_requested = lambda: task.steps >= 2
    assert not stopped.run()
    assert checkpoint_steps(tmp_path)[-1] == 2 and not stopped.state.finished
    again = trainer(tmp_path, LineTask())
    assert again.resume() and again.run()
    assert [row["step"] for row in rows_of(tmp_path, "train")] == [1, 2, 3, 4, 5, 6]
    whole = LineTask()
    assert trainer(tmp_path / "whole", whole).run()
    assert torch.equal(whole.model.weight, again.model.weight)


def test_a_finished_run_is_not_taken_up_again(tmp_path: Path) -> None:
    assert trainer(tmp_path, LineTask()).run()
    task = LineTask()
    again = trainer(tmp_path, task)
    assert again.resume() and again.state.finished and again.run()
    assert task.steps == 0


def test_without_limit_it_ends_when_validations_stop_improving(tmp_path: Path) -> None:
    task = LineTask()
    task.losses = iter([3.0, 2.0, 2.5, 2.0, 2.2])
    saving, schedule = SavingConfig(validate_every_steps=2), ScheduleConfig("inverse_square_root")
    assert trainer(tmp_path, task, limit=LimitConfig(patience=3), saving=saving, schedule=schedule).run()
    assert [row["loss"] for row in rows_of(tmp_path, "validation")] == [3.0, 2.0, 2.5, 2.0, 2.2]


@pytest.mark.parametrize(
    ("factor", "said"),
    [(math.nan, "the loss is nan"), (math.inf, "the loss is inf"), (1e4, "far above that of a random guess")],
)
def test_a_loss_that_makes_no_sense_ends_the_run(tmp_path: Path, factor: float, said: str) -> None:
    with pytest.raises(UserError, match=f"training went wrong at step 4: .*{said}.*The last good checkpoint is .*002"):
        trainer(tmp_path, LineTask(factors={4: factor})).run()
    # That of step 3 holds the weights that gave this loss.
    assert checkpoint_steps(tmp_path)[-1] == 2
    assert [row["step"] for row in rows_of(tmp_path, "train")] == [1, 2, 3]
    assert rows_of(tmp_path, "failure")[0]["step"] == 4 and said in rows_of(tmp_path, "failure")[0]["reason"]


def test_a_run_that_goes_wrong_at_once_says_that_nothing_was_saved(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"at step 1: .*No good checkpoint was saved before; try a lower"):
        trainer(tmp_path, LineTask(factors={1: math.nan})).run()


def test_checkpoints_of_an_epoch_with_more_batches_are_of_other_data(tmp_path: Path) -> None:
    task = LineTask(batches=9)
    stopped = trainer(tmp_path, task)
    stopped.stop_requested = lambda: task.steps >= 5
    assert not stopped.run()
    other = trainer(tmp_path, LineTask(batches=3))
    assert other.resume()
    with pytest.raises(UserError, match="belong to other data"):
        other.run()


def test_the_mean_of_the_last_checkpoints_is_measured_and_kept_if_it_is_best(tmp_path: Path) -> None:
    task, saved = LineTask(), []
    task.losses = iter([4.0, 3.0, 2.0])
    weights: list[Tensor] = []

    def save(scores: dict[str, float], kept: Any) -> None:
        saved.append(scores["loss"])
        weights.append(dict(kept.tensors)["weight"].detach().clone())

    run = trainer(tmp_path, task, save, average_checkpoints=2)
    assert run.run()
    assert saved == [4.0, 3.0, 2.0] and "the mean of the last 2 checkpoints:" in run.observer.texts
    torch.testing.assert_close(weights[2], (weights[0] + weights[1]) / 2)
    assert torch.equal(task.model.weight, weights[1])  # the run itself has its last weights
