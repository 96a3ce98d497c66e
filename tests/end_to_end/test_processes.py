"""A run in several processes is the run in one."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import heedful
from heedful.model_folder import check_weights
from heedful.tasks.language_modeling.generation import GenerationOptions
from pickles import pickled_files

STEPS = 6
ENGINES = ["core", "torch"]
SETTINGS = [
    "model.width=32",
    "model.encoder={num_layers=1, dropout=0.2, attention={num_heads=2, dropout=0.1}, feed_forward={inner_width=46}}",
    "model.decoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=46, dropout=0.1}}",
    "training.batches={tokens_per_step=600, tokens_per_batch=300}",
    "training.saving={validations=2, checkpoint_seconds=0.0}",
    "training.machine={workers=2, threads=1}",
    "training.ema_decay=0.9",
]
Command = Callable[..., list[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_sentences) -> Path:
    path = tmp_path_factory.mktemp("processes")
    lines = make_sentences(300, seed=11)
    (path / "a.en").write_text("\n".join(lines) + "\n")
    (path / "a.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    return path


@pytest.fixture(scope="module")
def command(folder: Path) -> Command:
    def build(out: str, *more: str, steps: int = STEPS) -> list[str]:
        files = ["--source", folder / "a.en", "--target", folder / "a.de", "--out", folder / out]
        sets = [f"--set={setting}" for setting in SETTINGS]
        arguments = ["train", "translation", *map(str, files), *sets, "--steps", str(steps), *more]
        return [sys.executable, "-m", "heedful", *arguments]

    return build


def finish(command: list[str], code: int = 0, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, capture_output=True, timeout=240, stdin=subprocess.DEVNULL, env=environment)
    assert result.returncode == code, result.stderr.decode()[-3000:]
    return result.stderr.decode()


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> list[tuple[str, int, float]]:
    return [(row["kind"], row["step"], row["loss"]) for row in rows(out)]


@pytest.fixture(scope="module")
def alone(command: Command, folder: Path) -> Path:
    finish(command("alone"))
    return folder / "alone"


def test_two_processes_give_the_bits_of_one(command: Command, alone: Path, folder: Path) -> None:
    shown = finish(command("two", "--processes", "2"))
    assert "2: replicate 2" in shown and "exact sums" in shown
    assert shown.count("done:") == 1
    assert losses(folder / "two") == losses(alone)
    for file in ("model.safetensors", f"run/checkpoints/step-{STEPS:09d}/optimizer.safetensors"):
        assert (folder / "two" / file).read_bytes() == (alone / file).read_bytes()
    steps = [json.loads(line) for line in (folder / "two" / "run/logs/rank-1.log").read_text().splitlines()]
    assert [row["step"] for row in steps if row["kind"] == "step"] == [*range(1, STEPS + 1)]


@pytest.mark.slow
def test_torchrun_is_the_same_command(command: Command, alone: Path, folder: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    finish([*launcher, *command("torchrun")[1:]])
    assert losses(folder / "torchrun") == losses(alone)


@pytest.mark.parametrize("axis", ["shard", pytest.param("tensor", marks=pytest.mark.slow)])
def test_a_model_that_is_spread_gives_the_losses_of_one(command: Command, alone: Path, folder: Path, axis: str) -> None:
    shards = ("--set", "training.saving.shard_bytes=30_000")
    finish(command(axis, "--processes", "2", "--set", f"training.parallel.{axis}=2", *shards))
    for one, other in zip(rows(alone), rows(folder / axis), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)
        assert one.get("examples") == other.get("examples")
    found = check_weights(folder / axis)
    assert found.shapes == check_weights(alone).shapes and len(found.version) > 2
    text = heedful.load(alone).translate("red dog").text
    assert [heedful.load(folder / axis, engine=each).translate("red dog").text for each in ENGINES] == [text, text]
    assert (folder / axis / "run" / "checkpoints" / f"step-{STEPS:09d}" / "rank-00001.safetensors").is_file()
    assert pickled_files(folder / axis) == []


@pytest.mark.slow
def test_a_run_goes_on_in_another_number_of_processes_and_layout(command: Command, folder: Path) -> None:
    finish(command("long", steps=60))
    shard, tensor = ("--set=training.parallel.shard=2",), ("--set=training.parallel.tensor=2",)
    stopped_after(command("changing", "--processes", "2", *shard, steps=60), folder / "changing", 4)
    stopped_after(command("changing", "--processes", "2", *tensor, steps=60), folder / "changing", 12)
    stopped_after(command("changing", "--processes", "4", *shard, *tensor, steps=60), folder / "changing", 20)
    finish(command("changing", steps=60))
    for one, other in zip(rows(folder / "long"), rows(folder / "changing"), strict=True):
        assert (one["kind"], one["step"]) == (other["kind"], other["step"])
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("more", [(), ("--processes", "2")], ids=["one", "two"])
def test_the_end_of_the_terminal_saves_and_ends_a_run(command: Command, folder: Path, more: tuple[str, ...]) -> None:
    out = f"hung-up-{len(more)}"
    stopped_after(command(out, *more, steps=500), folder / out, 3, signal.SIGHUP)
    assert list((folder / out / "run" / "checkpoints").glob("step-*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_processes_end_with_the_one_that_started_them(command: Command, folder: Path) -> None:
    process = subprocess.Popen(command("orphaned", "--processes", "2", steps=5000), stderr=subprocess.DEVNULL)
    ranks = [process_of(folder / "orphaned", rank, 2) for rank in (0, 1)]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{rank}").exists() for rank in ranks):
        assert time.monotonic() < deadline, "they go on"
        time.sleep(0.1)


def stopped_after(command: list[str], out: Path, step: int, number: int = signal.SIGTERM) -> None:
    """SIGTERM, as a scheduler sends it, saves and ends all processes."""
    metrics, deadline = out / "run" / "metrics.jsonl", time.monotonic() + 120
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        while not metrics.exists() or metrics.read_text().count('"train"') < step:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, b"stopped and saved" in told) == (130, True), told.decode()[-2000:]


def process_of(out: Path, rank: int, step: int) -> int:
    """The process of a rank, once it has logged a step after its last start."""
    log, deadline = out / "run" / "logs" / f"rank-{rank}.log", time.monotonic() + 120
    while time.monotonic() < deadline:
        lines = log.read_text().splitlines(True) if log.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        if found and found[-1].get("step", 0) >= step:
            return int(next(row["process"] for row in reversed(found) if row["kind"] == "start"))
        time.sleep(0.005)
    raise AssertionError("no such step was logged")


SPREAD_CASES = [("shard", 4, 1), ("tensor", 2, 1), ("tensor", 4, 1), ("tensor", 4, 0), ("pipeline", 2, 1)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process for a while")
@pytest.mark.parametrize(
    ("axis", "size", "rank"),
    [("replicate", 2, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in SPREAD_CASES)],
)
def test_a_process_that_hangs_ends_the_run_with_an_error_that_names_it(
    command: Command, gpt: Command, folder: Path, axis: str, size: int, rank: int
) -> None:
    patience = 3 if size == 2 else 12  # where processes share a core with others, one that works may take seconds, too
    more = (f"--set=training.parallel.timeout_seconds={patience}", f"--set=training.parallel.{axis}=2")  # groups of two
    train, out = gpt if axis == "pipeline" else command, f"hung-{axis}-{size}-{rank}"  # only a decoder lies in stages
    hanging = train(out, "--processes", str(size), *more, steps=5000)
    with subprocess.Popen(hanging, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        hung = process_of(folder / out, rank, 3)
        os.kill(hung, signal.SIGSTOP)
        told = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 2, told[-2000:]
    assert re.search(rf"heedful: rank {rank} did not answer at step \d+ \(noticed by rank \d", told), told[-2000:]
    with pytest.raises(ProcessLookupError):
        os.kill(hung, 0)


GPT = [
    "model.width=32",
    "model.max_length=23",
    "model.stack={num_layers=2, dropout=0.2, attention={num_heads=2, dropout=0.1}, feed_forward={inner_width=46}}",
    "training.batches={tokens_per_step=600, tokens_per_batch=300}",
    "training.saving={validations=2, checkpoint_seconds=0.0}",
    "training.machine={workers=2, threads=1}",
    "training.ema_decay=0.9",
]


@pytest.fixture(scope="module")
def gpt(folder: Path, command: Command) -> Command:
    def build(out: str, *more: str, steps: int = STEPS) -> list[str]:
        start = [sys.executable, "-m", "heedful", "train", "language-model", "--text", str(folder / "a.en")]
        sets = [f"--set={setting}" for setting in GPT]
        return [*start, "--out", str(folder / out), *sets, "--steps", str(steps), *more]

    return build


def losses_agree(one: Path, other: Path) -> None:
    for expected, found in zip(rows(one), rows(other), strict=True):
        assert (expected["kind"], expected["step"]) == (found["kind"], found["step"])
        assert expected["loss"] == pytest.approx(found["loss"], abs=1e-4)
        assert expected.get("examples") == found.get("examples")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_by_the_first_process_alone(gpt: Command, folder: Path) -> None:
    text, pipe = folder / "a.en", folder / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_bytes(text.read_bytes()), daemon=True).start()
    finish([str(pipe) if each == str(text) else each for each in gpt("piped", "--processes", "2")])
    finish(gpt("not-piped"))
    assert losses(folder / "piped") == losses(folder / "not-piped")
    assert not (folder / "piped" / "run" / "spooled.partial").exists()


STAGES = ("--processes", "2", "--set=training.parallel.pipeline=2")


def test_a_gpt_in_stages_gives_the_losses_of_one_process(gpt: Command, folder: Path) -> None:
    finish(gpt("gpt"))
    shown = finish(gpt("staged", *STAGES))
    assert "2: pipeline 2" in shown
    losses_agree(folder / "gpt", folder / "staged")
    one, other = (load_file(folder / name / "model.safetensors") for name in ("gpt", "staged"))
    assert [(name, each.shape) for name, each in one.items()] == [(name, each.shape) for name, each in other.items()]
    likeliest = GenerationOptions(max_tokens=8, temperature=0.0)
    text = heedful.load(folder / "gpt").generate("red", likeliest)
    assert [heedful.load(folder / "staged", engine=each).generate("red", likeliest) for each in ENGINES] == [text, text]
    look = ["inspect", str(folder / "staged"), "--training", "--out", str(folder / "training.html")]
    told = finish([sys.executable, "-m", "heedful", *look])
    assert f"2 processes, steps 1 to {STEPS}: " in told and "is the slowest" in told


@pytest.mark.slow
def test_a_run_goes_on_in_stages_and_out_of_them(gpt: Command, folder: Path) -> None:
    finish(gpt("gpt-long", steps=60))
    copies = ("--processes", "4", "--set=training.parallel.replicate=2", "--set=training.parallel.pipeline=2")
    stopped_after(
        gpt("gpt-changing", "--processes", "2", "--set=training.parallel.shard=2", steps=60), folder / "gpt-changing", 4
    )
    stopped_after(gpt("gpt-changing", *STAGES, steps=60), folder / "gpt-changing", 12)
    stopped_after(gpt("gpt-changing", *copies, steps=60), folder / "gpt-changing", 20)
    finish(gpt("gpt-changing", steps=60))
    losses_agree(folder / "gpt-long", folder / "gpt-changing")


@pytest.fixture(scope="module")
def with_compiler(folder: Path) -> dict[str, str]:
    """The environment of commands that compile, which keep what they have compiled for each other."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "kept-code")}
    program = "import torch; torch.compile(lambda x: x.sin() + 1)(torch.ones(3))"
    tried = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=240)
    if tried.returncode:
        pytest.skip(f"torch cannot compile here: {tried.stderr.decode()[-200:]}")
    return environment


@pytest.mark.slow
def test_compiled_blocks_give_the_losses_of_others(gpt: Command, folder: Path, with_compiler: dict[str, str]) -> None:
    finish(gpt("plain"))
    for out, more in (("compiled", ()), ("compiled-two", ("--processes", "2"))):
        finish(gpt(out, *more, "--set=training.parallel.compile=true"), environment=with_compiler)
        losses_agree(folder / "plain", folder / out)


@pytest.mark.slow
def test_without_a_compiler_compiled_blocks_are_refused_in_one_line(gpt: Command, folder: Path) -> None:
    missing = {**os.environ, "CXX": str(folder / "no-compiler"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "nothing")}
    told = finish(gpt("refused", "--set=training.parallel.compile=true"), 2, missing)
    assert "heedful: training.parallel.compile is true, but torch cannot compile on this machine" in told
    assert "Traceback" not in told and not (folder / "refused" / "run" / "config.json").exists()


def test_stages_of_an_encoder_decoder_are_refused_with_a_reason(command: Command, folder: Path) -> None:
    told = finish(command("staged-translation", *STAGES), 2)
    assert told.count("heedful: ") == 1 and "what the encoder gives would have to pass through every stage" in told
    assert not (folder / "staged-translation" / "run" / "config.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_is_started_again_and_the_run_is_the_quiet_one(command: Command, folder: Path) -> None:
    finish(command("quiet", steps=300))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=3"]
    process = subprocess.Popen([*launcher, *command("killed", steps=300)[1:]], stderr=subprocess.DEVNULL)
    for rank, step in ((1, 20), (0, 60)):
        os.kill(process_of(folder / "killed", rank, step), signal.SIGKILL)
    assert process.wait(200) == 0
    assert losses(folder / "killed") == losses(folder / "quiet")


def test_what_cannot_be_is_told_once_in_one_line(command: Command, folder: Path) -> None:
    told = finish(command("wrong", "--processes", "2", "--set", "training.parallel.shard=3"), 2)
    assert told.count("heedful: training.parallel asks for shard 3 = 3 processes, but there are 2") == 1
    assert not (folder / "wrong" / "run" / "config.json").exists()
    told = finish(command("wrong", "--processes", "3"), 2)
    assert "a step of this run has 4 parts, which 3 processes cannot share evenly" in told


@pytest.mark.slow
def test_more_processes_than_parts_are_refused(command: Command) -> None:
    told = finish(command("alone", "--processes", "5"), 2)
    assert "a step of this run has 4 parts, which 5 processes cannot share: start a number of processes" in told
