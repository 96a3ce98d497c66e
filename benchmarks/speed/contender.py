"""A system that translates: one driver, or several replicas of it that share the sentences."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.speed.environments import NotInstallableError
from benchmarks.speed.peer import Peer, PeerError
from heedful.machine.devices import available_cores

BEAM = 5
# The fewest and the most tokens of a translation, without its end: more than any of the test sentences' has, or, with
# weights that do not know when to end, for all systems the same number, the mean of the references.
ANY_LENGTH, MEAN_LENGTH = (0, 64), (14, 14)


@dataclass(frozen=True)
class Setup:
    """How a system is started: driver, environment, threads of a process, processes, arguments of `load`, batch.

    `variables` are those of the process's environment, `words` say it for a table.
    """

    driver: str
    environment: str
    threads: int
    arguments: dict[str, Any]
    batch: int
    replicas: int = 1
    words: str = ""
    variables: tuple[tuple[str, str], ...] = ()


@dataclass
class Contender:
    """A running system and its latest translations."""

    setup: Setup
    lengths: tuple[int, int]
    peers: list[Peer] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    outputs: list[list[int]] = field(default_factory=list)

    def start(self) -> None:
        """Start the processes and load the model in each."""
        setup = self.setup
        variables = dict(setup.variables)
        self.peers = [Peer(setup.driver, setup.environment, setup.threads, variables) for _ in range(setup.replicas)]
        try:
            for peer in self.peers:
                self.versions = peer.ask("load", **setup.arguments)["versions"]
        except PeerError:
            self.stop()
            raise

    def seconds(self, sources: list[list[int]], batch: int | None = None, beam: int = BEAM) -> float:
        """Translate all, and give the time that it took."""
        count = len(self.peers)
        shortest, longest = self.lengths
        settings = {"batch": batch or self.setup.batch, "beam": beam, "shortest": shortest, "longest": longest}
        started = time.perf_counter()
        for number, peer in enumerate(self.peers):
            peer.send("translate", sources=sources[number::count], **settings)
        answers = [peer.receive() for peer in self.peers]
        wall = time.perf_counter() - started
        self.outputs = [[] for _ in sources]
        for number, answer in enumerate(answers):
            self.outputs[number::count] = answer["outputs"]
        # One process tells its own time; of several the last one counts.
        return float(answers[0]["seconds"]) if count == 1 else wall

    def peak_megabytes(self) -> float:
        """The peak resident memory of all processes."""
        return sum(peer.peak_megabytes() for peer in self.peers)

    def stop(self) -> None:
        """End the processes."""
        for peer in self.peers:
            peer.close()


def start_all(contenders: dict[str, Contender]) -> dict[str, Exception]:
    """Start them side by side, and tell which cannot be started, and why."""
    with ThreadPoolExecutor(available_cores()) as pool:
        starting = {name: pool.submit(contender.start) for name, contender in contenders.items()}
    failed: dict[str, Exception] = {}
    for name, future in starting.items():
        try:
            future.result()
        except (PeerError, NotInstallableError) as error:
            failed[name] = error
    return failed


def first_translation_seconds(setup: Setup, lengths: tuple[int, int], source: list[int]) -> float:
    """From the start of a process to its first translation."""
    contender = Contender(setup, lengths)
    started = time.perf_counter()
    contender.start()
    contender.seconds([source], batch=1)
    took = time.perf_counter() - started
    contender.stop()
    return took
