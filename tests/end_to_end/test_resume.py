"""Killed at any moment and started again, a run is the run that was never killed."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.training.limits import LARGEST_ESTIMATE, RESERVE

pytestmark = pytest.mark.slow

STEPS = 24


@pytest.fixture
def command(tmp_path: Path, make_sentences) -> Callable[..., list[str]]:
    lines = make_sentences(300, seed=11)
    (tmp_path / "a.en").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    settings = [
        "model.width=32",
        "model.encoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=64}}",
        "model.decoder={num_layers=2, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=64}}",
        "training.batches={tokens_per_step=600, tokens_per_batch=300}",
        "training.saving={validations=4, checkpoint_seconds=0.0}",
        "training.machine.workers=2",
    ]

    def build(out: str, *more: str) -> list[str]:
        files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de", "--out", tmp_path / out]
        sets = [f"--set={setting}" for setting in settings]
        return [sys.executable, "-m", "heedful", "train", "translation", *map(str, files), *sets, *more]

    return build


def finish(command: list[str], code: int = 0) -> str:
    result = subprocess.run(command, capture_output=True, timeout=240)
    assert result.returncode == code, result.stderr.decode()[-2000:]
    return result.stderr.decode()


def losses(out: Path) -> list[tuple[str, int, float]]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows if row["kind"] != "failure"]


def kill_when(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.kill()
    process.wait()


def test_killed_and_resumed_is_bit_for_bit_uninterrupted(command, tmp_path: Path) -> None:
    limit = ["--steps", str(STEPS)]
    finish(command("whole", *limit))
    broken = tmp_path / "broken"

    def steps_done(at_least: int) -> Callable[[], bool]:
        metrics = broken / "run" / "metrics.jsonl"
        return lambda: metrics.exists() and metrics.read_text().count('"train"') >= at_least

    def in_the_middle_of_a_checkpoint() -> bool:
        return any((broken / "run" / "checkpoints").glob("writing-*/*.safetensors"))

    for moment in (steps_done(3), in_the_middle_of_a_checkpoint, steps_done(13), in_the_middle_of_a_checkpoint):
        process = subprocess.Popen(command("broken", *limit), stderr=subprocess.DEVNULL)
        kill_when(process, moment)
    assert "continuing after step" in finish(command("broken", *limit))

    whole = tmp_path / "whole"
    assert losses(broken) == losses(whole)
    assert [row[1] for row in losses(whole) if row[0] == "train"] == list(range(1, STEPS + 1))
    for name in (
        "model.safetensors",
        "tokenizer.json",
        "config.json",
        f"run/checkpoints/step-{STEPS:09d}/model.safetensors",
    ):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_ctrl_c_saves_and_the_same_command_continues(command, tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    process = subprocess.Popen(command("stopped", "--steps", "100000"), stderr=subprocess.PIPE)
    metrics = out / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") >= 5):
        time.sleep(0.01)
        assert process.poll() is None
    other = finish(command("stopped", "--steps", "100000"), code=2)
    assert "another run is at work" in other
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the same command continues" in stderr
    checkpoint = max((out / "run" / "checkpoints").glob("step-*"))
    saved = json.loads((checkpoint / "state.json").read_text())["position"]["step"]
    assert saved == losses(out)[-1][1]


def test_a_run_with_other_settings_is_refused(command, tmp_path: Path) -> None:
    finish(command("run", "--steps", "2"))
    assert "training.limit.steps was 2 and is now 3" in finish(command("run", "--steps", "3"), code=2)
    assert "done" in finish(command("run", "--steps", "2"))  # finished: nothing is done again
    assert len([row for row in losses(tmp_path / "run") if row[0] == "train"]) == 2


def test_a_run_that_explodes_stops_and_leaves_the_last_good_checkpoint(command, tmp_path: Path) -> None:
    # The rate grows by 0.02 a step, and no warm-up ever ends.
    schedule = "{kind='inverse_square_root', learning_rate=200.0, warmup_steps=10000}"
    wild = ["--steps", "500", f"--set=training.schedule={schedule}", "--set=training.ema_decay=0.0"]
    text = finish(command("wild", *wild), code=2)
    assert "training went wrong at step" in text
    assert "The last good checkpoint is" in text
    failed_at = int(text.split("went wrong at step ")[1].split(":")[0])
    newest = max((tmp_path / "wild" / "run" / "checkpoints").glob("step-*"))
    assert int(newest.name.removeprefix("step-")) == failed_at - 2
    assert all(math.isfinite(loss) for _, _, loss in losses(tmp_path / "wild"))
    assert f"training went wrong at step {failed_at}" in finish(command("wild", *wild), code=2)


def test_epochs_and_a_budget_end_by_themselves(command, tmp_path: Path) -> None:
    finish(command("epochs", "--epochs", "2"))
    rows = [json.loads(line) for line in (tmp_path / "epochs" / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {row["epoch"] for row in rows if row["kind"] == "train"} == {0, 1}
    finish(command("budget", "--budget", "6s"))
    # By the run's own clock, so that a busy machine takes fewer steps, and not more time.
    rows = [json.loads(line) for line in (tmp_path / "budget" / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["kind"] == "train"]
    assert all(row["elapsed"] - row["seconds"] < 6 for row in steps[1:])
    last = max((tmp_path / "budget" / "run" / "checkpoints").glob("step-*"))
    state = json.loads((last / "state.json").read_text())
    assert state["finished"] and state["position"]["step"] == len(steps)
    # Not before its time: no more of the budget was kept than the last validation may need.
    validations = [row for row in rows if row["kind"] == "validation"]
    kept = max(6 * LARGEST_ESTIMATE, *(RESERVE * row["seconds"] for row in validations))
    assert validations[-1]["elapsed"] + kept >= 6


def test_the_mean_of_the_last_checkpoints(command, tmp_path: Path) -> None:
    text = finish(
        command("mean", "--steps", "8", "--set=training.average_checkpoints=3", "--set=training.ema_decay=0.0")
    )
    assert "the mean of the last 3 checkpoints" in text
    kept = {int(each.name[5:]) for each in (tmp_path / "mean" / "run" / "checkpoints").iterdir()}
    assert kept >= {4, 6, 8}


def test_without_limit_it_stops_when_it_no_longer_improves(command, tmp_path: Path) -> None:
    settings = ["--set=training.limit.patience=2", "--set=training.saving.validate_every_steps=5"]
    finish(command("patient", *settings, "--set=training.schedule.learning_rate=1e-12"))
    rows = [row for row in losses(tmp_path / "patient") if row[0] == "validation"]
    best = min(range(len(rows)), key=lambda place: rows[place][2])
    assert len(rows) - 1 - best == 2


def test_data_that_changed_is_not_mixed_with_the_old(command, tmp_path: Path) -> None:
    finish(command("run", "--steps", "2"))
    report = (tmp_path / "run" / "run" / "data-report.jsonl").read_bytes()
    for name in ("a.en", "a.de"):
        with (tmp_path / name).open("a") as file:
            file.write("one more\n")
    assert "have changed since the run" in finish(command("run", "--steps", "2"), code=2)
    assert (tmp_path / "run" / "run" / "data-report.jsonl").read_bytes() == report


def test_a_budget_that_preparation_uses_up_still_gives_a_model(command, tmp_path: Path) -> None:
    assert "done" in finish(command("short", "--budget", "0.01s"))
    assert (tmp_path / "short" / "model.safetensors").exists()
