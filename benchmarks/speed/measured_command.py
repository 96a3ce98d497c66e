"""A whole command, from its start to its end: the time it takes, or the memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.speed.process_tree import peaks

# Seconds between two looks at a command's memory; each process tells its largest so far.
BETWEEN_LOOKS = 0.005
# What a user has not set: the one slows Python's output, the other lets it compile its files at each start.
LEFT_OUT = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}


class CommandError(Exception):
    """What a command that failed said last."""


@dataclass(frozen=True)
class Command:
    """A command that reads a file and writes one, with variables of its own; some of ours may be left out."""

    name: str
    words: list[str]
    source: Path
    target: Path
    variables: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()

    def seconds(self) -> float:
        """Run it, and give the time that it took."""
        started = time.perf_counter()
        with self._running() as process:
            process.wait()
        return time.perf_counter() - started

    def megabytes(self) -> float:
        """Run it, and give the largest resident memory of all its processes, summed."""
        found: dict[int, float] = {}
        with self._running() as process:
            while process.poll() is None:
                for pid, megabytes in peaks(process.pid).items():
                    found[pid] = max(megabytes, found.get(pid, 0.0))
                time.sleep(BETWEEN_LOOKS)
        return sum(found.values())

    def lines(self) -> list[str]:
        """What it wrote the last time."""
        return self.target.read_text(encoding="utf-8").split("\n")[:-1]

    @contextmanager
    def _running(self) -> Iterator[subprocess.Popen[bytes]]:
        inherited = {name: value for name, value in os.environ.items() if name not in LEFT_OUT | self.left_out}
        log = self.target.with_suffix(".log")
        with self.source.open("rb") as source, self.target.open("wb") as target, log.open("wb") as errors:
            environment = {**inherited, **self.variables}
            process = subprocess.Popen(self.words, stdin=source, stdout=target, stderr=errors, env=environment)
            yield process
        if process.returncode:
            said = log.read_text(encoding="utf-8", errors="replace")[-500:]
            raise CommandError(f"{self.name} failed with status {process.returncode}: {said}")
