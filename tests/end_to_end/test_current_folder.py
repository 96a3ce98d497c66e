"""Python files of the current folder, which may be that of a model or of data, are not imported by any process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEEDFUL = str(Path(sys.executable).with_name("heedful"))
MODULES = ("types", "pickle", "random", "socket")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("raise ImportError('this file was imported')\n")
    return tmp_path


def finish(folder: Path, *arguments: str | Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run([HEEDFUL, *map(str, arguments)], cwd=folder, input=stdin, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout


def test_workers_of_a_translation(folder: Path, untrained_model: Path) -> None:
    lines = b"".join(b"red dog %d\n" % number for number in range(300))
    options = ["--engine", "torch", "--workers", "2", "--beam", "1", "--max-length", "3"]
    assert finish(folder, "translate", untrained_model, *options, stdin=lines).count(b"\n") == 300


def test_processes_of_a_run(folder: Path, make_sentences) -> None:
    lines = make_sentences(300, seed=13)
    (folder / "a.en").write_text("".join(f"{line}\n" for line in lines))
    (folder / "a.de").write_text("".join(f"{line.upper()}\n" for line in lines))
    files = ["--source", "a.en", "--target", "a.de", "--out", "out"]
    finish(folder, "train", "translation", *files, "--steps", "1", "--set", "model.width=32", "--processes", "2")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM for another process")
def test_workers_of_a_server(folder: Path, untrained_model: Path) -> None:
    command = [HEEDFUL, "serve", str(untrained_model), "--port", "0", "--workers", "1"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stderr=log) as process:
        try:
            end = time.monotonic() + 60
            while b"http://" not in (folder / "log").read_bytes():
                assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGTERM)
