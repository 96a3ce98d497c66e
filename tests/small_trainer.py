"""A trainer of a model of a few numbers, for what is saved and found again.

Run as a program, it saves in processes that come to an end in the middle of it, and prints a line of JSON for each:
which steps were reported as saved, and which one the next start found. `at-each FOLDER STEPS` ends a process at every
operation on names of files, the first at the first one, and so on; `killed FOLDER SECONDS...` kills them after a time,
and `killed-meanwhile` does so while the steps go on as they are saved.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from heedful.training.config import BatchConfig, MachineConfig, TrainingConfig
from heedful.training.limits import Clock
from heedful.training.loop import Trainer

Save = Callable[[Path, int, int], None]
OPERATIONS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


class Listener:
    """Keeps the messages of a run."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)


class NothingToLearn:
    """Stands for a task: no step is taken."""

    loss = None


def small_trainer(folder: Path) -> Trainer:
    """A trainer that works in a folder, with weights that tell the step."""
    folder.mkdir(parents=True, exist_ok=True)
    batches = BatchConfig(tokens_per_step=10, tokens_per_batch=10)
    machine = MachineConfig("cpu", workers=1, threads=1, precision="fp32")
    config = TrainingConfig(batches=batches, machine=machine, ema_decay=0.5)
    return Trainer(
        torch.nn.Linear(3, 2), NothingToLearn(), config, folder, Listener(), Clock(), lambda scores, weights: None
    )


def take_step(trainer: Trainer, step: int) -> None:
    """Pretend to take a step."""
    trainer.state.position.step = step
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.fill_(step)
            zeros = torch.zeros_like(parameter)
            state = {"step": torch.tensor(float(step)), "exp_avg": zeros.clone(), "exp_avg_sq": zeros.clone()}
            trainer.learner.optimizer.state[parameter] = state
    trainer.metrics.write("train", {"step": step, "loss": 1 / step})


def save_step(trainer: Trainer, step: int) -> None:
    """Pretend to take a step, and save."""
    take_step(trainer, step)
    trainer.save()


def found_step(folder: Path) -> int:
    """The step that the next start finds, whose weights and metrics must be its own."""
    trainer = small_trainer(folder)
    if not trainer.resume():
        return 0
    step = trainer.state.position.step
    assert all(bool((parameter == step).all()) for parameter in trainer.model.parameters())
    rows = [json.loads(line)["step"] for line in trainer.metrics.path.read_text().splitlines()]
    assert rows == sorted(rows) and set(rows) == set(range(1, step + 1)), rows
    assert not trainer.observer.messages, trainer.observer.messages
    return step


def save_on(folder: Path, steps: int, report: int) -> None:
    """Save the steps that come next, the last of them twice, and report each to a file descriptor."""
    trainer = small_trainer(folder)
    first = trainer.state.position.step + 1 if trainer.resume() else 1
    for step in [*range(first, first + steps), first + steps - 1]:
        save_step(trainer, step)
        os.write(report, f"{step}\n".encode())


def save_meanwhile(folder: Path, steps: int, report: int) -> None:
    """The same while the steps go on: each is reported when the next one begins to be saved."""
    trainer = small_trainer(folder)
    first = trainer.state.position.step + 1 if trainer.resume() else 1
    for step in range(first, first + steps):
        take_step(trainer, step)
        trainer.start_saving()  # what was begun before is complete
        if step > first:
            os.write(report, f"{step - 1}\n".encode())


def end_at_operation(number: int, folder: Path) -> None:
    """Let this process end, as by a kill, when it is about to do its n-th operation inside a folder."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        # Names inside an open folder, as rmtree uses them, are relative.
        inside = event in OPERATIONS and (folder / str(arguments[0])).is_relative_to(folder)
        if inside:
            count += 1
            if count == number:
                os._exit(9)

    sys.addaudithook(hook)


def start(folder: Path, steps: int, end_at: int | None, save: Save = save_on) -> tuple[int, int]:
    """Save in a process of its own; its id, and where it reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if end_at is not None:
            end_at_operation(end_at, folder)
        save(folder, steps, writing)
        os._exit(0)
    os.close(writing)
    return child, reading


def wait_for(child: int, reading: int) -> tuple[list[int], int]:
    """What a process reported, and its exit code."""
    with os.fdopen(reading) as reports:
        reported = [int(line) for line in reports if line.endswith("\n")]
    return reported, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def next_start(folder: Path) -> int | str:
    """What the next start finds, in a process of its own; or what went wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer: int | str = found_step(folder)
        except BaseException as error:
            answer = repr(error)
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        found = json.loads(answers.read())
    os.waitpid(child, 0)
    return found


def tell(reported: list[int], folder: Path) -> None:
    found = next_start(folder)
    names = sorted(each.name for each in (folder / "checkpoints").glob("*"))
    print(json.dumps({"reported": reported, "found": found, "names": names}), flush=True)


def end_at_each_operation(folder: Path, steps: int) -> None:
    """End a process at its first operation, another one at its second, and so on, until one comes to its own end."""
    code, number = 9, 0
    while code == 9:
        number += 1
        reported, code = wait_for(*start(folder / str(number), steps, number))
        tell(reported, folder / str(number))


def kill_after(folder: Path, seconds: list[float], save: Save) -> None:
    """Kill a process that long after its first report, again and again in the same folder."""
    for each in seconds:
        child, reading = start(folder, 10**6, None, save)
        os.set_blocking(reading, True)
        first = os.read(reading, 20)
        time.sleep(each)
        os.kill(child, signal.SIGKILL)
        reported, _ = wait_for(child, reading)
        tell([int(line) for line in first.split()] + reported, folder)


if __name__ == "__main__":
    what, place, *numbers = sys.argv[1:]
    # Once before it is forked: what torch imports when it is first used takes seconds.
    save_step(small_trainer(Path(place, "first")), 1)
    found_step(Path(place, "first"))
    if what == "at-each":
        end_at_each_operation(Path(place), int(numbers[0]))
    else:
        save = save_meanwhile if what == "killed-meanwhile" else save_on
        kill_after(Path(place, what), [float(each) for each in numbers], save)
