"""Training beside others: each on batches of its own making, and all on the same padded ones; on one thread, and the
narrowest model on all cores too, as each one uses them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import results
from benchmarks.speed.corpus import Corpus, load_corpus
from benchmarks.speed.environments import NotInstallableError, make_all
from benchmarks.speed.limits import gemm_peak, name_of
from benchmarks.speed.measuring import Measured, interleaved
from benchmarks.speed.peer import Peer, PeerError
from benchmarks.speed.sizes import QUICK, SIZES, Size
from heedful.machine.devices import available_cores

COMMAND = "heedful bench training"
# System -> driver, environment.
SYSTEMS = {
    "heedful": ("heedful_training", "heedful"),
    "Hugging Face Marian": ("huggingface_training", "huggingface"),
    "torch.nn.Transformer": ("torch_training", "heedful"),
    "x-transformers": ("xtransformers_training", "x-transformers"),
    "JoeyNMT": ("joeynmt_training", "joeynmt"),
}
# Width -> sentences a batch, batches that are timed together, rounds.
AMOUNTS = {128: (64, 2, 3), 256: (64, 2, 3), 512: (32, 1, 3), 32: (8, 2, 2)}
# Width -> what is required of heedful: by own batches, by the same batches, share of the GEMM peak.
REQUIRED = {128: (2.5, 1.5, None), 256: (1.8, 1.2, 50), 512: (1.5, 1.0, 65)}
BEST_OF = ("Hugging Face Marian", "torch.nn.Transformer")


class Runner:
    """One system with a model of one size, and what its last runs were like."""

    def __init__(self, system: str, size: Size, corpus: Corpus, threads: int) -> None:
        driver, environment = SYSTEMS[system]
        self.peer = Peer(driver, environment, threads)
        sentences, batches, _ = AMOUNTS[size.width]
        try:
            answer = self.peer.ask(
                "load",
                size=size.as_dict(),
                pairs=str(corpus.pairs),
                sentences=sentences,
                batches=batches,
                threads=threads,
            )
        except PeerError:
            self.peer.close()
            raise
        self.has_recipe: bool = answer["has_recipe"]
        self.versions: dict[str, str] = answer["versions"]
        self.last: dict[str, Any] = {}

    def tokens_per_second(self, which: str) -> float:
        """Take the steps, and give the speed in real target tokens."""
        self.last[which] = self.peer.ask("run", which=which)
        return float(self.last[which]["target_tokens"] / self.last[which]["seconds"])


def main(quick: bool) -> None:
    """Measure all sizes and write the table."""
    corpus = load_corpus()
    make_all()
    rows: list[dict[str, Any]] = []
    for size in [QUICK] if quick else SIZES:
        rows += Comparison(size, corpus, 1).rows()
    rows += Comparison(QUICK if quick else SIZES[0], corpus, available_cores()).rows()
    results.write(name_of("training", quick), rows)


class Comparison:
    """All systems that run, with a model of one size, on so many threads."""

    def __init__(self, size: Size, corpus: Corpus, threads: int) -> None:
        self.size, self.corpus, self.threads = size, corpus, threads
        self.started = time.monotonic()
        # What batches are like matters to a step, not to how cores share it.
        self.kinds = ("own", "same") if threads == 1 else ("own",)
        self.label = size.name if threads == 1 else f"{size.name}, {threads} cores"
        least = REQUIRED.get(size.width, (None, None, None)) if threads == 1 else (None, None, None)
        bars = (f">= {each}" if each else "-" for each in least)
        self.required = dict(zip(("own", "same", "share"), bars, strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """Measure, and compare."""
        runners, rows = {}, []
        with ThreadPoolExecutor(available_cores()) as pool:
            loading = {system: pool.submit(Runner, system, self.size, self.corpus, self.threads) for system in SYSTEMS}
        for system, runner in loading.items():
            try:
                runners[system] = runner.result()
            except (PeerError, NotInstallableError) as error:
                print(f"{system} is left out: {error}", flush=True)
                rows.append(self._row(system, "left out", 0.0, str(error)[:300]))
        peak = gemm_peak(self.threads)
        modes = [(system, which) for system, runner in runners.items() for which in self._modes(runner)]
        measured = interleaved(
            {f"{system}/{which}": lambda s=system, w=which: runners[s].tokens_per_second(w) for system, which in modes},
            AMOUNTS[self.size.width][2],
        )
        for system, runner in runners.items():
            for which in self.kinds:
                key = which if which in self._modes(runner) else "same"
                rows += self._speed(system, which, measured[f"{system}/{key}"], runner.last[key], peak)
            row = self._row(system, "peak memory", runner.peer.peak_megabytes(), "MB")
            rows.append(row | {"peer_versions": runner.versions})
            runner.peer.close()
        return rows + self._memory(rows) + self._ratios(rows)

    def _modes(self, runner: Runner) -> tuple[str, ...]:
        """What there is to measure: without a recipe of its own, both kinds of batch are the same."""
        return self.kinds if runner.has_recipe else ("same",)

    def _speed(
        self, system: str, which: str, speed: Measured, run: dict[str, Any], peak: float
    ) -> list[dict[str, Any]]:
        pairs = [pair for sources, targets in run["lengths"] for pair in zip(sources, targets, strict=True)]
        per_token = sum(self.size.training_flops(*pair) for pair in pairs) / run["target_tokens"]
        share = 100 * per_token * speed.median / 1e9 / peak
        required = self.required["share"] if (system, which) == ("heedful", "own") else "-"
        details = {"low": round(speed.low, 1), "high": round(speed.high, 1), "padding": round(100 * run["padding"], 1)}
        return [
            self._row(system, f"speed, {which} batches", speed.median, "target tokens/s") | details,
            self._row(system, f"useful share of GEMM peak, {which} batches", share, "%", required),
        ]

    def _memory(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """heedful's over that of whoever takes least."""
        peaks = {each["system"]: each["value"] for each in rows if each["what"] == "peak memory"}
        ours, others = peaks.pop("heedful"), peaks.values()
        return [self._row("heedful", "peak memory / the least of the others", ours / min(others), "x", "<= 1")]

    def _ratios(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """heedful over each, and over the better of the two that are the bar."""
        found = []
        for which in self.kinds:
            speeds = {each["system"]: each["value"] for each in rows if each["what"] == f"speed, {which} batches"}
            bars = {system: [system] for system in speeds if system != "heedful"}
            bars["the better of Hugging Face and torch.nn.Transformer"] = [name for name in BEST_OF if name in speeds]
            for system, names in bars.items():
                ratio = speeds["heedful"] / max(speeds[name] for name in names)
                required = self.required[which] if len(names) > 1 else "-"
                if (system, which) == ("JoeyNMT", "own"):
                    required = ">= 5"
                found.append(self._row(system, f"heedful / this, {which} batches", ratio, "x", required))
        return found

    def _row(self, system: str, what: str, value: float, unit: str, required: str = "-") -> dict[str, Any]:
        measure = f"{self.label}: {system}: {what}"
        row = results.row(measure, round(value, 3), unit, required, time.monotonic() - self.started, COMMAND)
        return row | {"size": self.label, "system": system, "what": what, "data": self.corpus.kind}
