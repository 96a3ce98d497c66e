"""Starting the processes of a run on one machine, as torchrun would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from heedful.errors import UserError
from heedful.machine.child_imports import SAFE_PATH
from heedful.machine.signals import ending_signals

# How long processes have to end by themselves after one of them has failed.
GRACE_SECONDS = 10.0
# The id of the process that started the others.
LAUNCHER = "HEEDFUL_LAUNCHER"


def run_processes(count: int, arguments: Sequence[str]) -> int:
    """Run the command `heedful` with these arguments in this many processes, and return the exit code of the run."""
    from torch._C._distributed_c10d import TCPStore

    # Held by this process, which outlives them all; port 0 takes any free one.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        LAUNCHER: str(os.getpid()),
    }
    command = [sys.executable, "-m", "heedful", *arguments]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(count):
            processes.append(_start(rank, command, shared))
        with _passing_on_signals(processes):
            return _wait(processes)
    finally:  # when one of them could not be started, too
        _end(processes)


def _start(rank: int, command: Sequence[str], shared: Mapping[str, str]) -> subprocess.Popen[bytes]:
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    stdin = None if rank == 0 else subprocess.DEVNULL
    try:
        return subprocess.Popen(command, env={**os.environ, **SAFE_PATH, **shared, **own}, stdin=stdin)
    except OSError as error:
        raise UserError(
            f"process {rank} could not be started ({error.strerror}): give fewer --processes, or raise the limit of "
            "processes with `ulimit -u`"
        ) from None


@contextmanager
def _passing_on_signals(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """A terminal sends Ctrl-C to all processes; what is sent to this one alone is passed on for them to act on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def pass_on(number: int, frame: object) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}
    for number in ending_signals():
        signal.signal(number, pass_on)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_launcher() -> None:
    """End this process, as a kill would, when the process that started it is gone; torchrun ends its own processes."""
    launcher = os.environ.get(LAUNCHER)
    if launcher is None or os.name == "nt":  # where a process keeps its parent's id
        return

    def watch() -> None:
        while os.getppid() == int(launcher):
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """The exit code of the first process, or else of one that has failed, once all have ended or been ended."""
    failed_at: float | None = None
    while True:
        codes = [process.poll() for process in processes]
        if None not in codes:
            break
        if failed_at is None and any(code not in (None, 0, 130) for code in codes):
            failed_at = time.monotonic()
            _tell_of_kills(codes)
        if failed_at is not None and time.monotonic() - failed_at > GRACE_SECONDS:
            break
        time.sleep(0.05)
    _end(processes)
    for process in processes:
        process.wait()
    # The code of one that had to be ended here says nothing about what went wrong.
    ends = [code for code in codes if code is not None]
    first = codes[0] or next((code for code in ends if code not in (0, 130)), 0)
    return 128 - first if first < 0 else first


def _tell_of_kills(codes: Sequence[int | None]) -> None:
    """A process that was killed could not say so itself, and the others may not have noticed yet."""
    for rank, code in enumerate(codes):
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            likely = ", as the system does when memory runs out" if name == "SIGKILL" else ""
            advice = "the others end with it, and the same command continues the run"
            print(f"heedful: process {rank} was ended by {name}{likely}; {advice}", file=sys.stderr, flush=True)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
