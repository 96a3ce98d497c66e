"""A process that hangs as a checkpoint is written is noticed after the timeout, one with a slow disk is not."""

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heedful.errors import UserError
from heedful.training.config import MachineConfig, ParallelConfig, TrainingConfig
from heedful.training.parallel.world import World
from heedful.training.replica import make_learner
from heedful.training.run_state import RunState
from heedful.training.saving import Saver
from linear_task import checkpoint_steps
from parallel_models import CASES, build
from process_group import run_in_processes

TIMEOUT = 2.0


def save_twice(world: World, folder: str) -> Any:
    """Save with a second process that is slow, and with one that is stopped; what the first is told of the latter."""
    process = world.sums([os.getpid() * world.rank])[0]
    world.timeout = world.beats.timeout = TIMEOUT  # type: ignore[attr-defined]
    config = TrainingConfig(
        parallel=ParallelConfig(shard=2, reduce="fast"), machine=MachineConfig("cpu", 2, 1, "fp32"), ema_decay=0.9
    )
    case = CASES["gpt"]
    learner: Any = make_learner(build(case, torch.float32), SimpleNamespace(loss=case.loss), config, world)
    saver, begin = Saver(Path(folder), 0.0, world), learner.checkpoint

    def save(step: int, before: Any) -> None:
        world.at_step(step)
        state = RunState()
        state.position.step = step
        learner.checkpoint = lambda *given, **named: _after(before, begin(*given, **named))
        saver.start(learner, state, set())
        saver.wait()

    save(1, lambda: time.sleep(2.5 * TIMEOUT * world.rank))
    whole = checkpoint_steps(Path(folder).parent)
    began, told = time.monotonic(), "nothing"
    try:
        save(2, lambda: os.kill(os.getpid(), signal.SIGSTOP) if world.rank else None)
    except UserError as error:
        told = str(error)
    waited = time.monotonic() - began
    if world.leads:
        os.kill(process, signal.SIGCONT)
    return {"whole": whole, "told": told, "waited": waited}


def _after(before: Any, write: Any) -> Any:
    def both() -> None:
        before()
        write()

    return both


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process for a while")
def test_a_process_that_is_stopped_as_it_writes_is_named_and_a_slow_one_is_waited_for(tmp_path: Path) -> None:
    found = run_in_processes(2, tmp_path / "results", save_twice, str(tmp_path / "checkpoints"))
    assert [each["whole"] for each in found] == [[1], [1]]
    assert "rank 1 did not answer at step 2 (noticed by rank 0: nothing was heard for 2 s" in found[0]["told"]
    assert TIMEOUT < found[0]["waited"] < 30.0
