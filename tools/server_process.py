"""A server in its own process, for tests and programs."""

from __future__ import annotations

import socket
import subprocess
import sys
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
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    try:
        wait_until(lambda: process.poll() is not None or _answers(f"http://127.0.0.1:{port}/healthz"), 60)
        assert process.poll() is None, process.communicate()[1].decode()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


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
