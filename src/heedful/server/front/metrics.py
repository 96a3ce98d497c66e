"""Figures for Prometheus, in its text format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from heedful.machine.memory import resident_memory
from heedful.server.messages import WorkerState

# Upper bounds of latencies, in seconds.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts requests and their latencies by route."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.latencies: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: dict[str, float] = defaultdict(float)

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[route, status] += 1
        self.latencies[route][bisect_left(BUCKETS, seconds)] += 1
        self.seconds[route] += seconds

    def text(self, load: int, restarts: int, states: Sequence[WorkerState | None]) -> str:
        """All figures; those that a worker or the system does not give are left out."""
        lines = _family("heedful_requests_total", "counter", "Requests by route and status.", self._requests())
        lines += _family("heedful_request_seconds", "histogram", "Time to answer, by route.", self._histogram())
        lines += _family("heedful_queue", "gauge", "Inputs given to workers and not answered.", [("", load)])
        lines += _family("heedful_worker_restarts_total", "counter", "Workers started again.", [("", restarts)])
        for name, kind, meaning in WORKER_FIGURES:
            values = [(f'{{worker="{n}"}}', getattr(each, name)) for n, each in enumerate(states) if each]
            suffix = "_total" if kind == "counter" else "_bytes" if name == "memory" else ""
            if name == "memory":
                values.append(('{worker="front"}', resident_memory()))
            lines += _family(f"heedful_{name}{suffix}", kind, meaning, values)
        return "\n".join(lines) + "\n"

    def _requests(self) -> Iterable[tuple[str, float]]:
        for (route, status), count in sorted(self.requests.items()):
            yield f'{{route="{route}",status="{status}"}}', count

    def _histogram(self) -> Iterable[tuple[str, float]]:
        for route, counts in sorted(self.latencies.items()):
            total = 0
            for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += count
                yield f'_bucket{{route="{route}",le="{bound}"}}', total
            yield f'_sum{{route="{route}"}}', self.seconds[route]
            yield f'_count{{route="{route}"}}', total


WORKER_FIGURES = (
    ("waiting", "gauge", "Inputs that wait in a worker."),
    ("running", "gauge", "Sentences that have a slot."),
    ("slots", "gauge", "Slots that there are at present."),
    ("tokens", "counter", "Steps of sentences since the worker's start."),
    ("memory", "gauge", "Physical memory of a process."),
)


def _family(name: str, kind: str, meaning: str, values: Iterable[tuple[str, float | None]]) -> list[str]:
    return [
        f"# HELP {name} {meaning}",
        f"# TYPE {name} {kind}",
        *(f"{name}{labels} {value}" for labels, value in values if value is not None),
    ]
