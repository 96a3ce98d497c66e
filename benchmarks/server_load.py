"""Load servers from a second process, and compare their throughput with that of `heedful translate`.

For each setup (engine, precision, sentences per request) a server, with two workers: 64 clients, or as many as have 256
sentences under way, which is what a server takes, each with one request at a time, and the same sentences through
`heedful translate`, in three rounds in which the setups take turns. Then, for 30 s each, twice as many requests per
second as the server could take. The clients share the machine with the server: what they take of it is measured too.

python benchmarks/server_load.py --model en-de --source test.en                  # writes results/server_load.json
python benchmarks/server_load.py --model en-de --source test.en --seconds 5      # a quick try, which only prints
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import results
from http_load import Connection, in_another_process, lines_of, metrics, percentile, server, translation

COMMAND = "python benchmarks/server_load.py --model {model} --source {source} --setups {setups}"
SETUPS = ["core:int8:1", "core:int8:16", "torch:fp32:1"]
CLIENTS, UNDER_WAY = 64, 256
SECONDS = 60.0
ROUNDS = 3
MOST_CONNECTIONS = 900
# What sentences may end with: `heedful translate` does not translate a line again that it has had.
ENDS = ".!?;:,…)-/"
# Figures of an earlier run, of torch alone, that stay in the result file.
EARLIER = "earlier, with torch: "
COMPARED = (
    "throughput of the server",
    "throughput of heedful translate",
    "server / heedful translate",
    "latency, median",
    "latency, 99th percentile",
)


async def closed_loop(port: int, bodies: list[bytes], clients: int, seconds: float) -> dict[str, Any]:
    """So many clients, each of which asks again when it is answered."""
    numbers, statuses, latencies = count(), Counter[int](), []
    end = time.perf_counter() + seconds

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < end:
            answer = await connection.ask("POST", "/api/translate", bodies[next(numbers) % len(bodies)])
            statuses[answer.status] += 1
            latencies.append(round(answer.seconds, 4))
        connection.close()

    begin, computed = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client() for _ in range(clients)))
    spent = time.perf_counter() - begin
    busy = (time.process_time() - computed) / (len(latencies) or 1)
    return {"statuses": statuses, "rate": statuses[200] / spent, "latencies": latencies, "busy": busy}


async def open_loop(port: int, bodies: list[bytes], rate: float, seconds: float) -> dict[str, Any]:
    """So many requests a second, whether they are answered or not."""
    statuses, refusals, memory = Counter[int](), [], []
    idle: list[Connection] = []
    tasks: set[asyncio.Task[None]] = set()

    async def ask(number: int) -> None:
        connection = idle.pop() if idle else Connection(port)
        try:
            answer = await connection.ask("POST", "/api/translate", bodies[number % len(bodies)])
        except (OSError, asyncio.IncompleteReadError):
            statuses[0] += 1
            return
        statuses[answer.status] += 1
        if answer.status in (429, 503):
            refusals.append(answer.seconds)
        idle.append(connection)

    begin = time.perf_counter()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begin + number / rate - time.perf_counter()))
        while len(tasks) >= MOST_CONNECTIONS:  # more than the server can even refuse
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(ask(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if number % max(1, int(rate)) == 0:
            memory.append((await metrics(port))["memory_bytes"])
    sent = time.perf_counter() - begin
    await asyncio.gather(*tasks)
    for connection in idle:
        connection.close()
    return {
        "statuses": statuses,
        "rate": statuses[200] / sent,
        "sent": int(rate * seconds) / sent,
        "p50": percentile(refusals, 0.5),
        "p99": percentile(refusals, 0.99),
        "memory": max(memory),
        "growth": max(memory) / max(memory[: len(memory) // 2 + 1]),
    }


def offline(model: str, lines: list[str], computing: list[str]) -> float:
    """Sentences a second of `heedful translate`, without the time that it takes to start."""

    def seconds(given: list[str]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            source.write_text("\n".join(given) + "\n", encoding="utf-8")
            command = [sys.executable, "-m", "heedful", "translate", model, *computing]
            begin = time.perf_counter()
            subprocess.run([*command, "--input", source], check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - begin

    few = lines[: len(lines) // 20]
    return (len(lines) - len(few)) / (seconds(lines) - seconds(few))


def varied(lines: list[str], number: int) -> list[str]:
    """At least so many lines, as far as there are ends for them: the given ones, and the same with other ends."""
    rounds = max(1, -(-number // len(lines)))
    return lines + [line.rstrip(ENDS) + end for end in ENDS[1:rounds] for line in lines]


@dataclass
class Setup:
    """An engine with a precision, the server that runs with it, how it is asked, and what was measured so far."""

    name: str
    computing: list[str]
    texts: int  # per request
    port: int = 0
    offline: list[float] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    figures: list[tuple[str, float, str, str]] = field(default_factory=list)

    @property
    def clients(self) -> int:
        """How many clients there are: no more than the server takes sentences of."""
        return min(CLIENTS, UNDER_WAY // self.texts)

    @property
    def rate(self) -> float:
        """Sentences per second of the server, over all rounds."""
        return self.texts * statistics.mean(each["rate"] for each in self.rounds)

    def loaded(self, kind: str, source: str, amount: float, seconds: float) -> dict[str, Any]:
        """What clients in a process of their own have seen."""
        arguments = ("--client", kind, self.port, source, self.texts, amount, seconds)
        found: dict[str, Any] = in_another_process("server_load.py", *arguments)
        print(self.name, kind, {name: value for name, value in found.items() if name != "latencies"}, flush=True)
        return found


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """All figures."""
    lines = lines_of(arguments.source)
    offline_lines = varied(lines, arguments.offline_lines)  # long enough for start and end not to count
    command = COMMAND.format(model=arguments.model, source=arguments.source, setups=" ".join(arguments.setups))
    setups = [set_up(each, arguments.workers) for each in arguments.setups]
    begin = time.perf_counter()
    with ExitStack() as stack:
        for setup in setups:
            setup.port = stack.enter_context(server([arguments.model], *setup.computing))
            setup.loaded("closed", arguments.source, setup.clients, min(3.0, arguments.seconds))  # warm
        for number in range(ROUNDS):
            # Each in turn, and every second time the other way round: what changes over time changes all alike.
            for setup in setups if number % 2 == 0 else setups[::-1]:
                own = offline_lines[number::ROUNDS]
                setup.offline.append(offline(arguments.model, own, setup.computing))
                print(setup.name, "offline", setup.offline[-1], flush=True)
                found = setup.loaded("closed", arguments.source, setup.clients, arguments.seconds / ROUNDS)
                setup.rounds.append(found)
        for setup in setups:
            setup.figures = [*speed(setup), *overload(setup, arguments.source, arguments.seconds)]
    seconds = time.perf_counter() - begin
    return [
        results.row(f"{setup.name}: {name}", value, unit, required, seconds, command)
        for setup in setups
        for name, value, unit, required in setup.figures
    ]


def set_up(name: str, workers: int) -> Setup:
    """The setup of that engine, precision, and number of sentences per request, as in core:int8:16."""
    engine, precision, texts = name.split(":")
    computing = ["--workers", str(workers), "--engine", engine, "--precision", precision]
    return Setup(f"{engine} {precision}, sentences per request: {texts}", computing, int(texts))


def speed(setup: Setup) -> list[tuple[str, float, str, str]]:
    """How fast a server was in its rounds, beside the command."""
    answered = sum(each["statuses"].get("200", 0) for each in setup.rounds)
    latencies = [each for found in setup.rounds for each in found["latencies"]]
    ratios = [setup.texts * found["rate"] / offline for found, offline in zip(setup.rounds, setup.offline, strict=True)]
    return [
        ("requests answered", answered, "requests", ""),
        ("requests failed", len(latencies) - answered, "requests", "0"),
        ("throughput of the server", round(setup.rate, 1), "sentences/s", ""),
        ("throughput of heedful translate", round(statistics.mean(setup.offline), 1), "sentences/s", ""),
        ("server / heedful translate", round(statistics.median(ratios), 3), "", ">= 0.9"),
        (
            "processor time of the clients per request",
            round(1000 * statistics.median(found["busy"] for found in setup.rounds), 3),
            "ms",
            "",
        ),
        ("latency, median", percentile(latencies, 0.5), "s", ""),
        ("latency, 99th percentile", percentile(latencies, 0.99), "s", ""),
    ]


def overload(setup: Setup, source: str, seconds: float) -> list[tuple[str, float, str, str]]:
    """What becomes of a server that is asked for twice as much as it can do."""
    memory = asyncio.run(metrics(setup.port))["memory_bytes"]
    rate = setup.rate / setup.texts
    over = setup.loaded("open", source, 2 * rate, seconds / 2)
    stuck = asyncio.run(settled(setup.port))
    again = setup.loaded("closed", source, setup.clients, seconds / ROUNDS)
    odd = sum(number for status, number in over["statuses"].items() if status not in ("200", "429", "503"))
    refused = sum(over["statuses"].get(status, 0) for status in ("429", "503"))
    return [
        ("overload: requests a second sent", round(over["sent"], 1), "requests/s", ""),
        ("overload: answered a second", round(over["rate"], 1), "requests/s", ""),
        ("overload: refused (429, 503)", refused, "requests", "> 0"),
        ("overload: other failures", odd, "requests", "0"),
        ("overload: time to refuse, median", round(over["p50"], 4), "s", ""),
        ("overload: time to refuse, 99th percentile", round(over["p99"], 4), "s", "< 1"),
        ("memory of all processes", round(memory / 2**20), "MiB", ""),
        ("overload: memory of all processes", round(over["memory"] / 2**20), "MiB", ""),
        ("overload: memory, second half / first half", round(over["growth"], 3), "", "< 1.1"),
        ("overload: sentences left over", stuck, "sentences", "0"),
        ("throughput after the overload / before", round(again["rate"] / rate, 3), "", ">= 0.9"),
    ]


def earlier() -> list[dict[str, Any]]:
    """The rows of the result file that tell of the server before it had an engine of its own."""
    rows = json.loads((results.RESULTS / "server_load.json").read_text(encoding="utf-8"))
    kept = [row for row in rows if row["measure"].startswith(EARLIER)]
    first = [row for row in rows if row["measure"] in COMPARED]
    return kept or [{**row, "measure": EARLIER + row["measure"], "required": ""} for row in first]


async def settled(port: int) -> float:
    """How much is still under way when all is answered."""
    await asyncio.sleep(0.5)
    found = await metrics(port)
    return found["queue"] + found["running"] + found["waiting"]


def client(kind: str, port: str, source: str, texts: str, amount: str, seconds: str) -> None:
    """The second process."""
    lines, number = lines_of(source), int(texts)
    bodies = [translation(line) for line in lines]
    if number > 1:
        bodies = [translation(lines[first : first + number]) for first in range(0, len(lines) - number + 1, number)]
    if kind == "open":
        found = asyncio.run(open_loop(int(port), bodies, float(amount), float(seconds)))
    else:
        found = asyncio.run(closed_loop(int(port), bodies, int(float(amount)), float(seconds)))
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--source", help="sentences to translate, a line each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--setups", nargs="+", default=SETUPS, help="engine:precision:sentences per request")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--offline-lines", type=int, default=10_000)
    parser.add_argument("--client", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        client(*arguments.client)
        return
    rows = measure(arguments)
    if arguments.seconds == SECONDS:
        results.write("server_load", [*rows, *earlier()])
        return
    for row in rows:
        print(f"{row['measure']:45} {row['value']:>12} {row['unit']:12} required: {row['required']}")


if __name__ == "__main__":
    main()
