"""Which engine computes, as users choose it and are told of it, and what both do when they are interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from heedful.core.library import instruction_set
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.recurrent import Recurrent
from heedful.settings.recurrent import RecurrentConfig
from heedful.text.tokenizer import Tokenizer

ENGINES = ("core", "torch")


@pytest.fixture
def recurrent_model(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    tokenizer, settings = Tokenizer.train(["red dog"], 263), RecurrentConfig(263, 12, 14, 29)
    config = ModelConfig("recurrent", "translation", settings)
    save_model_folder(tmp_path / "recurrent", Recurrent(settings), tokenizer, config, "card")
    return tmp_path / "recurrent"


def engine_row(run, folder: Path) -> str:
    (row,) = [line for line in run("info", folder).stdout.decode().splitlines() if " engine " in line]
    return row.strip("│ ").partition("│")[2].strip()


def test_info_tells_the_engine(run, untrained_model: Path, recurrent_model: Path) -> None:
    assert engine_row(run, untrained_model) == f"core ({instruction_set()})"
    assert engine_row(run, recurrent_model) == "torch: models of the family recurrent run on torch"


def test_an_engine_that_cannot_do_it_says_why(run, untrained_model: Path, recurrent_model: Path) -> None:
    told = run("translate", recurrent_model, "--engine", "core", "red dog", code=2).stderr
    assert told == b"heedful: the engine core cannot do this: models of the family recurrent run on torch\n"
    assert b"'auto', 'core', 'torch'" in run("translate", untrained_model, "--engine", "jax", "red dog", code=2).stderr


def test_both_engines_translate_alike(run, copy_model: Path, make_sentences) -> None:
    text = "".join(f"{line}\n" for line in make_sentences(97, 31)).encode()
    options = ["--nbest", 2, "--alignment", "--beam", 3]
    by_core, by_torch = (run("translate", copy_model, "--engine", each, *options, stdin=text) for each in ENGINES)
    assert by_core.stdout == by_torch.stdout and by_core.stdout.count(b"\n") == 2 * 97


def started(model: Path, file: Path, engine: str) -> subprocess.Popen[bytes]:
    """A translation that would take minutes, and is under way."""
    file.write_text("".join(f"red dog {number}\n" for number in range(200_000)))
    command = [sys.executable, "-m", "heedful", "translate", str(model), "--engine", engine, "--workers", "2"]

    def heed_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells let what runs in the background ignore it

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*command, "--input", str(file)], **pipes, preexec_fn=heed_ctrl_c)
    assert process.stdout is not None and process.stdout.readline().endswith(b"\n")
    return process


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_a_translation_soon(untrained_model: Path, tmp_path: Path, engine: str) -> None:
    with started(untrained_model, tmp_path / "text", engine) as process:
        workers = workers_of(process)
        assert len(workers) == (0 if engine == "core" else 2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.strip() == b"heedful: interrupted"
    assert not [worker for worker in workers if Path(f"/proc/{worker}/cmdline").exists()]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_worker_that_is_killed_is_told_of(untrained_model: Path, tmp_path: Path) -> None:
    with started(untrained_model, tmp_path / "text", "torch") as process:
        os.kill(workers_of(process)[0], signal.SIGKILL)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 2
    assert told == (b"heedful: a worker process ended unexpectedly, perhaps for lack of memory: try fewer --workers\n")
