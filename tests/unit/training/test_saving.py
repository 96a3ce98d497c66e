"""Checkpoints that are written while training goes on hold what was there when they were begun."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.training.checkpoint import load_checkpoint
from heedful.training.loop import Trainer
from linear_task import checkpoint_steps
from small_trainer import save_step, small_trainer, take_step

Write = Callable[[], None]


class Disk:
    """Holds up what a trainer writes until it is let go."""

    def __init__(self, trainer: Trainer) -> None:
        self.free, self.writing = threading.Event(), 0
        self.most_at_once = 0
        self._checkpoint = trainer.learner.checkpoint
        trainer.learner.checkpoint = self.checkpoint

    def checkpoint(self, *arguments: object, **settings: bool) -> Write:
        write = self._checkpoint(*arguments, **settings)

        def slowly() -> None:
            self.writing += 1
            self.most_at_once = max(self.most_at_once, self.writing)
            assert self.free.wait(60)
            write()
            self.writing -= 1

        return slowly


def start(trainer: Trainer, step: int) -> None:
    take_step(trainer, step)
    trainer.start_saving()


def test_training_goes_on_and_the_checkpoint_is_of_when_it_was_begun(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    disk = Disk(trainer)
    start(trainer, 1)
    take_step(trainer, 2)  # before a byte of the first is written
    assert checkpoint_steps(tmp_path) == [] and not trainer.saver.due()
    disk.free.set()
    trainer.saver.wait()
    tensors, state = load_checkpoint(tmp_path / "checkpoints" / "step-000000001")
    assert state["position"]["step"] == 1
    assert all(bool((each == 1).all()) for each in tensors["model"].values())
    assert bool((tensors["optimizer"]["weight/step"] == 1).all())
    again = small_trainer(tmp_path)
    assert again.resume() and again.state.position.step == 1  # the row of the second step is dropped
    assert again.metrics.path.read_text().count("\n") == 1


def test_one_at_a_time_and_the_one_before_is_complete_first(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    disk = Disk(trainer)
    start(trainer, 1)
    threading.Timer(0.2, disk.free.set).start()
    for step in (2, 3, 4):
        start(trainer, step)
        assert step - 1 in checkpoint_steps(tmp_path)
    trainer.saver.wait()
    assert disk.most_at_once == 1 and checkpoint_steps(tmp_path) == [3, 4]


def test_a_failure_is_told_with_the_path_and_ends_the_run(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    save_step(trainer, 1)
    place = tmp_path / "checkpoints" / "writing-step-000000002"
    disk = Disk(trainer)
    start(trainer, 2)
    place.parent.rename(tmp_path / "kept")
    place.parent.write_text("in the way")
    disk.free.set()
    while not trainer.saver.failed:
        time.sleep(0.001)
    with pytest.raises(UserError, match=r"cannot write .*checkpoints"):
        trainer.save()
    place.parent.unlink()
    (tmp_path / "kept").rename(place.parent)
    again = small_trainer(tmp_path)
    assert again.resume() and again.state.position.step == 1


def test_without_memory_for_a_copy_the_run_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.training import replica

    def no_memory(tensor: torch.Tensor) -> torch.Tensor:
        raise MemoryError

    trainer = small_trainer(tmp_path)
    monkeypatch.setattr(replica, "in_memory", no_memory)
    start(trainer, 1)
    assert checkpoint_steps(tmp_path) == [1]
