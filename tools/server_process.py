"""A server in its own process, for tests and programs."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def serving(models: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a server in a new process, perhaps with a different environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "heedful", "serve", *map(str, models), "--port", str(port), "--workers", "1"]
    # The log goes into a file: a pipe that nobody reads would fill up, and the server would stand still.
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stderr=log, env=environment)
        try:
            wait_until(lambda: process.poll() is not None or _answers(f"http://127.0.0.1:{port}/healthz"), 60)
            if process.poll() is not None:
                log.seek(0)
                raise AssertionError(log.read().decode())
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def wait_until(holds: Callable[[], Any], patience: float = 90) -> Any:
    """What `holds` gives, as soon as it is true."""
    end = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.03)
    return found
