"""Thousands of mixed requests, some malformed, some aborted in the middle of a stream: is anything left over?

python benchmarks/server_soak.py --source test.en en-de my-gpt my-classifier          # writes results/server_soak.json
python benchmarks/server_soak.py --source test.en --requests 300 en-de                # a quick try, which only prints
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from typing import Any

import results
from http_load import Connection, lines_of, metrics, server

COMMAND = "python benchmarks/server_soak.py"
REQUESTS = 5000
CLIENTS = 16
SEED = 20170612
MALFORMED = [
    ("/api/translate", b'{"text": '),
    ("/api/translate", b'{"text": 5}'),
    ("/api/translate", b'{"text": "x", "beam": 1000000}'),
    ("/api/translate", b'{"text": "x", "model": "../../etc/passwd"}'),
    ("/api/generate", b'{"prompt": ["x"]}'),
    ("/api/classify", b'{"image": "AAAA"}'),
    ("/api/nothing", b"{}"),
    ("/v1/embeddings", b"\xff\xfe"),
]


class Mix:
    """Draws requests that fit the models that are served."""

    def __init__(self, models: list[dict[str, Any]], lines: list[str]) -> None:
        self.draw, self.lines = random.Random(SEED), lines
        tasks: dict[str, list[str]] = {}
        for model in models:
            tasks.setdefault(model["task"], []).append(model["name"])
        makers = {"translation": self._translate, "language_model": self._generate, "classification": self._classify}
        self.makers = [(makers[task], name) for task, names in tasks.items() if task in makers for name in names]
        if not self.makers:
            raise SystemExit("give a translation model, a language model or a classifier of texts")
        self.streaming = [(make, name) for make, name in self.makers if make != self._classify]

    def request(self, stream: bool) -> tuple[str, bytes]:
        """A path and a body."""
        make, name = self.draw.choice(self.streaming if stream else self.makers)
        path, body = make(stream)
        return path, json.dumps({"model": name, **body}).encode()

    def _line(self) -> str:
        return self.draw.choice(self.lines)

    def _translate(self, stream: bool) -> tuple[str, dict[str, Any]]:
        kind = self.draw.random()
        if stream or kind < 0.5:
            return "/api/translate", {"text": self._line(), "beam": self.draw.choice([1, 5]), "stream": stream}
        if kind < 0.7:
            return "/api/alternatives", {"text": self._line(), "count": 5}
        texts = [self._line() for _ in range(self.draw.randint(1, 7))]
        return "/api/translate", {"text": texts, "nbest": self.draw.randint(1, 3), "alignment": True, "scores": True}

    def _generate(self, stream: bool) -> tuple[str, dict[str, Any]]:
        options = {"temperature": self.draw.choice([0.0, 0.8]), "seed": self.draw.randrange(2**32), "stream": stream}
        tokens = 100 if stream else self.draw.randint(1, 30)
        return "/api/generate", {"prompt": self._line(), "max_tokens": tokens, "probabilities": True, **options}

    def _classify(self, stream: bool) -> tuple[str, dict[str, Any]]:
        return "/api/classify", {"text": [self._line() for _ in range(self.draw.randint(1, 11))]}


async def soak(port: int, lines: list[str], requests: int) -> tuple[list[float], Counter[str], dict[str, float]]:
    """Memory after each fifth of the requests, what became of them, and the figures when all is over."""
    connection = Connection(port)
    models = json.loads((await connection.ask("GET", "/api/models")).body)["models"]
    connection.close()
    mix = Mix(models, lines)
    outcomes: Counter[str] = Counter()
    memory = []
    for _ in range(5):
        numbers = iter(range(requests // 5))
        await asyncio.gather(*(one_client(port, mix, numbers, outcomes) for _ in range(CLIENTS)))
        await asyncio.sleep(1.0)
        memory.append((await metrics(port))["memory_bytes"])
        print(f"{memory[-1] / 2**20:.1f} MiB", dict(outcomes), flush=True)
    return memory, outcomes, await metrics(port)


async def one_client(port: int, mix: Mix, numbers: Any, outcomes: Counter[str]) -> None:
    """One request after the other, as long as there are any."""
    connection = Connection(port)
    for _ in numbers:
        kind = mix.draw.random()
        if kind < 0.05:
            path, body = mix.draw.choice(MALFORMED)
            answer = await connection.ask("POST", path, body)
            outcomes["malformed, refused" if 400 <= answer.status < 500 else f"malformed, {answer.status}"] += 1
        elif kind < 0.10:
            path, body = mix.request(stream=True)
            await connection.send("POST", path, body)
            await connection.reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(mix.draw.random() * 0.05)
            connection.close()
            outcomes["aborted"] += 1
        else:
            path, body = mix.request(stream=mix.draw.random() < 0.2)
            answer = await connection.ask("POST", path, body)
            outcomes["answered" if answer.status == 200 and b"event: error" not in answer.body else "failed"] += 1
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--source", required=True, help="texts, a line each")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    begin = time.perf_counter()
    with server(arguments.models, "--workers", str(arguments.workers)) as port:
        memory, outcomes, last = asyncio.run(soak(port, lines_of(arguments.source), arguments.requests))
    under_way = last["queue"] + last["running"] + last["waiting"] + last["slots"]
    odd = sum(number for name, number in outcomes.items() if name.startswith("malformed,") and "refused" not in name)
    figures = [
        ("requests", float(sum(outcomes.values())), "requests", ""),
        ("answered", outcomes["answered"], "requests", ""),
        ("failed", outcomes["failed"] + odd, "requests", "0"),
        ("malformed, refused", outcomes["malformed, refused"], "requests", ""),
        ("aborted in the middle of a stream", outcomes["aborted"], "requests", ""),
        ("memory of all processes after a fifth", round(memory[0] / 2**20, 1), "MiB", ""),
        ("memory at the end", round(memory[-1] / 2**20, 1), "MiB", ""),
        ("memory at the end / after a fifth", round(memory[-1] / memory[0], 4), "", "<= 1.05"),
        ("slots and sentences left over", under_way, "", "0"),
    ]
    command = f"{COMMAND} --source {arguments.source} {' '.join(arguments.models)}"
    seconds = time.perf_counter() - begin
    rows = [results.row(name, value, unit, required, seconds, command) for name, value, unit, required in figures]
    if arguments.requests == REQUESTS:
        results.write("server_soak", rows)
        return
    for row in rows:
        print(f"{row['measure']:40} {row['value']:>12} {row['unit']:10} required: {row['required']}")


if __name__ == "__main__":
    main()
