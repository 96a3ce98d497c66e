"""Checkpoints that are written while training goes on: from a copy in memory, by a thread, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from heedful.machine.memory import out_of_memory
from heedful.training.checkpoint import (
    checkpoint_path,
    drop_checkpoints_after,
    prune_checkpoints,
    whole_checkpoints,
)
from heedful.training.checkpoint_timer import CheckpointTimer
from heedful.training.parallel.world import World
from heedful.training.replica import Learner
from heedful.training.run_state import RunState

# How long a run that has failed waits for the checkpoint that is being written.
SETTLING_SECONDS = 10.0


class Saver:
    """Writes the checkpoints of a run and removes those no longer needed; all processes call it together.

    A checkpoint gets its name when it is complete: nothing is promised about one being written until `wait` returns.
    """

    def __init__(self, folder: Path, asked_seconds: float | None, world: World) -> None:
        self.folder, self.world = folder, world
        self.timer = CheckpointTimer(asked_seconds)
        self._thread: threading.Thread | None = None
        self._alive = ExitStack()
        self._error: BaseException | None = None

    def due(self) -> bool:
        """Whether to save now; without an interval that was asked for, not before the last one is complete."""
        return self.timer.due() and (self.timer.asked is not None or not self._busy())

    @property
    def failed(self) -> bool:
        """Whether something went wrong, which `wait` will raise."""
        return self._error is not None

    def start(self, learner: Learner[Any], state: RunState, keep: set[int]) -> None:
        """Save where the run stands while the caller goes on: it returns once a copy is made.

        Apart from the newest two checkpoints, those of the steps in `keep` stay.
        """
        self.wait()
        try:
            self._begin(learner.checkpoint(self.folder, state, copied=True), state, keep)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            self._begin(learner.checkpoint(self.folder, state, copied=False), state, keep).join()

    def save(self, learner: Learner[Any], state: RunState, keep: set[int]) -> None:
        """The same without a copy: it returns when the checkpoint is complete."""
        self.wait()
        self._begin(learner.checkpoint(self.folder, state, copied=False), state, keep)
        self.wait()

    def wait(self) -> None:
        """Return when the checkpoint that is being written is complete; raise what went wrong with it."""
        if self._thread is None:
            return
        thread, self._thread = self._thread, None

        def finish() -> None:
            self.world.join(thread)
            if self._error is not None:
                raise self._error

        with self._alive.pop_all():
            # The others hear from the leading process that it is alive, and what went wrong there.
            self.world.by_leader("save", finish)
        thread.join()
        if self._error is not None:
            raise self._error

    def whole(self, steps: Sequence[int], tell: Callable[[str], None]) -> list[Path]:
        """The checkpoints of these steps that can be loaded, which the leading process finds out for all."""
        found: list[Path] = []
        paths = [checkpoint_path(self.folder, step) for step in steps]
        self.world.by_leader("look at checkpoints", lambda: found.extend(whole_checkpoints(paths, tell)))
        named = self.world.share(" ".join(path.name for path in found)).split()
        return [self.folder / name for name in named]

    def settle(self) -> None:
        """Let the checkpoint that is being written finish, if that does not take long, whatever its outcome."""
        if self._thread is not None:
            self._thread.join(SETTLING_SECONDS)

    def _busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _begin(self, write: Callable[[], object], state: RunState, keep: set[int]) -> threading.Thread:
        # A daemon: a process that fails must not wait for others that have gone.
        self._thread = threading.Thread(target=self._write, args=(write, state.position.step, keep), daemon=True)
        self.timer.begin()
        self._alive.enter_context(self.world.alive())
        self._thread.start()
        return self._thread

    def _write(self, write: Callable[[], object], step: int, keep: set[int]) -> None:
        try:
            with self.timer.saving():
                write()
                if self.world.leads:
                    drop_checkpoints_after(self.folder, step)
                    prune_checkpoints(self.folder, keep)
        except BaseException as error:  # for `wait` to raise
            self._error = error
