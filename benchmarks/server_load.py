"""Load a server from a second process, and compare its throughput with that of `heedful translate`.

64 clients for 60 s, each with one request at a time; before and after that, the same sentences through
`heedful translate`. Then, for 30 s, twice as many requests a second as the server could take.

python benchmarks/server_load.py --model en-de --source test.en                  # writes results/server_load.json
python benchmarks/server_load.py --model en-de --source test.en --seconds 5      # a quick try, which only prints
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import results
from http_load import Connection, in_another_process, lines_of, metrics, percentile, server, translation

COMMAND = "python benchmarks/server_load.py --model {model} --source {source} --precision {precision}"
CLIENTS = 64
SECONDS = 60.0
MOST_CONNECTIONS = 2000
# What sentences may end with: `heedful translate` does not translate a line again that it has had.
ENDS = ".!?;:,…)-/"


async def closed_loop(port: int, lines: list[str], clients: int, seconds: float) -> dict[str, Any]:
    """So many clients, each of which asks again when it is answered."""
    numbers, statuses, latencies = count(), Counter[int](), []
    end = time.perf_counter() + seconds

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < end:
            answer = await connection.ask("POST", "/api/translate", translation(lines[next(numbers) % len(lines)]))
            statuses[answer.status] += 1
            latencies.append(answer.seconds)
        connection.close()

    begin = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    elapsed = time.perf_counter() - begin
    return {
        "statuses": statuses,
        "rate": statuses[200] / elapsed,
        "p50": percentile(latencies, 0.5),
        "p99": percentile(latencies, 0.99),
    }


async def open_loop(port: int, lines: list[str], rate: float, seconds: float) -> dict[str, Any]:
    """So many requests a second, whether they are answered or not."""
    statuses, refusals, memory = Counter[int](), [], []
    idle: list[Connection] = []
    tasks: set[asyncio.Task[None]] = set()

    async def ask(number: int) -> None:
        connection = idle.pop() if idle else Connection(port)
        try:
            answer = await connection.ask("POST", "/api/translate", translation(lines[number % len(lines)]))
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
        assert len(tasks) < MOST_CONNECTIONS, "requests pile up"
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


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """All figures."""
    lines = lines_of(arguments.source)
    offline_lines = varied(lines, arguments.offline_lines)  # long enough for start and end not to count
    command = COMMAND.format(model=arguments.model, source=arguments.source, precision=arguments.precision)
    computing = ["--workers", str(arguments.workers), "--precision", arguments.precision]
    begin = time.perf_counter()

    def loaded(kind: str, port: int, amount: float, seconds: float) -> dict[str, Any]:
        found: dict[str, Any] = in_another_process(
            "server_load.py", "--client", kind, port, arguments.source, amount, seconds
        )
        print(kind, found, flush=True)
        return found

    with server([arguments.model], *computing) as port:
        loaded("closed", port, CLIENTS, 3.0)  # warm
        before = offline(arguments.model, offline_lines, computing)
        normal = loaded("closed", port, CLIENTS, arguments.seconds)
        after = offline(arguments.model, offline_lines, computing)
        memory = asyncio.run(metrics(port))["memory_bytes"]
        over = loaded("open", port, 2 * normal["rate"], arguments.seconds / 2)
        stuck = asyncio.run(settled(port))
        again = loaded("closed", port, CLIENTS, arguments.seconds)  # as long: short runs have a lower rate
    offline_rate = (before + after) / 2
    failed = sum(number for status, number in normal["statuses"].items() if status != "200")
    odd = sum(number for status, number in over["statuses"].items() if status not in ("200", "429", "503"))
    refused = sum(over["statuses"].get(status, 0) for status in ("429", "503"))
    figures: list[tuple[str, float, str, str]] = [
        ("requests answered", normal["statuses"]["200"], "requests", ""),
        ("requests failed", failed, "requests", "0"),
        ("throughput of the server", round(normal["rate"], 1), "sentences/s", ""),
        ("throughput of heedful translate", round(offline_rate, 1), "sentences/s", ""),
        ("server / heedful translate", round(normal["rate"] / offline_rate, 3), "", ">= 0.9"),
        ("latency, median", round(normal["p50"], 3), "s", ""),
        ("latency, 99th percentile", round(normal["p99"], 3), "s", ""),
        ("overload: requests a second sent", round(2 * normal["rate"], 1), "requests/s", ""),
        ("overload: answered a second", round(over["rate"], 1), "requests/s", ""),
        ("overload: refused (429, 503)", refused, "requests", "> 0"),
        ("overload: other failures", odd, "requests", "0"),
        ("overload: time to refuse, median", round(over["p50"], 4), "s", ""),
        ("overload: time to refuse, 99th percentile", round(over["p99"], 4), "s", "< 1"),
        ("memory of all processes", round(memory / 2**20), "MiB", ""),
        ("overload: memory of all processes", round(over["memory"] / 2**20), "MiB", ""),
        ("overload: memory, second half / first half", round(over["growth"], 3), "", "< 1.1"),
        ("overload: sentences left over", stuck, "sentences", "0"),
        ("throughput after the overload / before", round(again["rate"] / normal["rate"], 3), "", ">= 0.9"),
    ]
    seconds = time.perf_counter() - begin
    return [results.row(name, value, unit, required, seconds, command) for name, value, unit, required in figures]


async def settled(port: int) -> float:
    """How much is still under way when all is answered."""
    await asyncio.sleep(0.5)
    found = await metrics(port)
    return found["queue"] + found["running"] + found["waiting"]


def client(kind: str, port: str, source: str, amount: str, seconds: str) -> None:
    """The second process."""
    lines = lines_of(source)
    if kind == "open":
        found = asyncio.run(open_loop(int(port), lines, float(amount), float(seconds)))
    else:
        found = asyncio.run(closed_loop(int(port), lines, int(float(amount)), float(seconds)))
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--source", help="sentences to translate, a line each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--offline-lines", type=int, default=10_000)
    parser.add_argument("--client", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        client(*arguments.client)
        return
    rows = measure(arguments)
    if arguments.seconds == SECONDS:
        results.write("server_load", rows)
        return
    for row in rows:
        print(f"{row['measure']:45} {row['value']:>12} {row['unit']:12} required: {row['required']}")


if __name__ == "__main__":
    main()
