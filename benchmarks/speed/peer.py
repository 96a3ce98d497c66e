"""A system under test: a driver in a process of its own, which does one thing whenever it is asked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.speed.environments import python_of
from benchmarks.speed.process_tree import peaks

DRIVERS = Path(__file__).parent / "drivers"
LOGS = Path(__file__).parents[1] / "environments"


class PeerError(Exception):
    """What went wrong in a driver, in its own words."""


class Peer:
    """A running driver; `threads` and `variables` are set for every library in it before it starts."""

    def __init__(
        self, driver: str, environment: str, threads: int, variables: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.name = driver
        python = python_of(environment)
        settings = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL", "OPENBLAS")}
        # Nothing may ask the network, nor start threads for tokenizers that nobody uses.
        settings |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        LOGS.mkdir(exist_ok=True)
        self.log = (LOGS / f"{driver}.log").open("wb")
        self.process = subprocess.Popen(
            [python, str(DRIVERS / f"{driver}.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, **settings, **variables},
            text=True,
            encoding="utf-8",
        )

    def send(self, do: str, **arguments: Any) -> None:
        """Ask for something, without waiting for it."""
        assert self.process.stdin is not None
        print(json.dumps({"do": do, **arguments}), file=self.process.stdin, flush=True)

    def receive(self) -> Any:
        """The answer to what was asked first."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(f"{self.name} ended without an answer: see {self.log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.name}: {answer['error']}")
        return answer["result"]

    def ask(self, do: str, **arguments: Any) -> Any:
        """Ask for something, and wait for it."""
        self.send(do, **arguments)
        return self.receive()

    def peak_megabytes(self) -> float:
        """The largest resident memory that the driver and its processes have had, summed."""
        return sum(peaks(self.process.pid).values())

    def close(self) -> None:
        """End the driver."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
