"""What a worker process is told, and what waits for its clients."""

import asyncio
import errno
import signal
import subprocess
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.server.front.pool import WorkerPool
from heedful.server.front.worker_process import MOST_REPLACED, PendingAnswer, WorkerProcess, _blocked_signals
from heedful.server.messages import Partial
from heedful.server.settings import ServerSettings


@pytest.mark.parametrize("replaces", [True, False])
def test_a_slow_client_misses_what_was_replaced_and_nothing_else(replaces: bool) -> None:
    async def run() -> list[int]:
        worker = WorkerProcess(ServerSettings({}), lambda lost: None)
        queue = asyncio.Queue()
        worker.pending[1] = PendingAnswer(1, 1, asyncio.get_running_loop().create_future(), queue)
        for value in range(50):
            worker._take(Partial(1, value, replaces))
        return [queue.get_nowait() for _ in range(queue.qsize())]

    assert asyncio.run(run()) == list(range(50))[-MOST_REPLACED if replaces else 0 :]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here")
def test_a_process_is_started_deaf_to_what_ends_processes() -> None:
    program = "import signal; print(*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    with _blocked_signals():
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert {int(number) for number in found.stdout.split()} == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process ends by a signal here")
@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("os._exit(3)", "ended with exit code 3 before it had loaded its models: the reason is above in the log"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL before it had loaded its models, perhaps for lack of memory"),
        ("os.abort()", "was ended by SIGABRT before it had loaded its models"),
    ],
)
def test_how_a_worker_ended_before_it_was_ready_is_said(monkeypatch, tmp_path: Path, end: str, message: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import os, sys\nif 'spawn_main' in str(sys.orig_argv): {end}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        asyncio.run(WorkerProcess(ServerSettings({}), lambda worker, how: None).start())
    assert str(caught.value) == f"a worker {message}"


def test_a_process_that_could_not_be_started_can_be_stopped_and_the_reason_is_told(monkeypatch) -> None:
    def no_process(self: BaseProcess) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    async def run() -> None:
        worker = WorkerProcess(ServerSettings({}), lambda worker, how: None)
        try:
            with pytest.raises(BlockingIOError):
                await worker.start()
        finally:
            await worker.stop()

    monkeypatch.setattr(BaseProcess, "start", no_process)
    asyncio.run(run())
    with pytest.raises(BlockingIOError):
        asyncio.run(WorkerPool(ServerSettings({}, workers=1)).start())
