"""What becomes of a model's folder does not change a running server."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from server_process import wait_until

pytestmark = pytest.mark.slow
# Seconds in which a worker is given up, or started again.
PATIENCE = 60


@pytest.fixture
def folder(models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of the test's own; temporary files are in a folder beside it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return Path(shutil.copytree(models["translator"], tmp_path / "model"))


def overwrite(file: Path, content: bytes) -> None:
    """Write into the file that is there, as `cp` does."""
    with file.open("r+b") as opened:
        opened.write(content)
        opened.truncate()


def test_a_running_server_answers_as_it_did_when_it_started(start, folder: Path) -> None:
    def ask() -> dict:
        answer = client.post("/api/translate", json={"text": ["a red dog", "the sea"], "scores": True, "beam": 2})
        assert answer.status_code == 200, answer.text
        return answer.json()

    weights = folder / "model.safetensors"
    with start(folder, "--workers", "2") as server, server.client as client:
        before = ask()
        content = weights.read_bytes()
        header = 8 + int.from_bytes(content[:8], "little")
        overwrite(weights, content[:header] + bytes(len(content) - header))  # other weights of the same form
        assert ask() == before
        overwrite(weights, b"")
        for name in ("config.json", "tokenizer.json"):
            overwrite(folder / name, b"{}")
        assert ask() == before
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: server.metric("worker_restarts_total") == 2, PATIENCE)
        wait_until(lambda: client.get("/healthz").json()["workers"] == 2, PATIENCE)
        assert ask() == before
    assert not list((folder.parent / "temporary").glob("heedful-serve-*"))


def test_a_server_that_is_ended_by_force_leaves_nothing_behind(folder: Path) -> None:
    command = [sys.executable, "-m", "heedful", "serve", folder, "--port", "0", "--workers", "1"]
    temporary = folder.parent / "temporary"
    with (folder.parent / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        wait_until(lambda: b"http://" in (folder.parent / "log").read_bytes(), PATIENCE)
        assert len(list(temporary.glob("heedful-serve-*/0/model/model.safetensors"))) == 1
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not list(temporary.glob("heedful-serve-*")), PATIENCE)


def test_a_broken_model_is_named_by_its_own_folder(run, folder: Path) -> None:
    overwrite(folder / "model.safetensors", b"nonsense")
    said = run("serve", folder, "--port", "0", code=2).stderr.decode()
    assert f"{folder / 'model.safetensors'} is broken" in said and "heedful-serve" not in said
