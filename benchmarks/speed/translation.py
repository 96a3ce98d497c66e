"""Translation beside others with the same weights, beam 5, on all cores: speed, latency, start, memory, agreement."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import sacrebleu

from benchmarks import results
from benchmarks.speed.contender import ANY_LENGTH, MEAN_LENGTH, Contender, Setup, first_translation_seconds, start_all
from benchmarks.speed.corpus import Corpus, load_corpus
from benchmarks.speed.environments import NotInstallableError, make_all
from benchmarks.speed.limits import name_of
from benchmarks.speed.measuring import Measured, interleaved
from benchmarks.speed.peer import PeerError
from benchmarks.speed.random_model import random_model
from benchmarks.speed.setups import ctranslate2_setups, ctranslate2_single, exported, fastest, heedful_setup
from benchmarks.speed.sizes import BASE, QUICK, SMALL
from heedful.machine.devices import available_cores
from heedful.model_folder import load_model_folder
from heedful.text.tokenizer import Tokenizer

COMMAND = "heedful bench translation"
# With random weights, what is slow gets fewer sentences, the first ones: one of so many.
SHARES = {"heedful, torch engine": 4, "Hugging Face generate": 8, "JoeyNMT search": 16}
# Width -> sentences, sentences one by one, rounds.
AMOUNTS = {256: (512, 6, 3), 512: (512, 6, 3), 32: (24, 2, 1)}
# Sentences by which the best setting is found: two batches of the largest size.
PART = 128
OURS = {"heedful": "fp32", "heedful int8": "int8"}
# By how much either is to be ahead; what is required beside CTranslate2 is measured by `heedful bench engine`.
REQUIRED = {"Hugging Face generate": 2.5}


def main(quick: bool, model: Path | None = None) -> None:
    """Measure with the given model, or with random weights of two sizes."""
    corpus = load_corpus()
    make_all()
    folders = [model] if model else [random_model(size, corpus) for size in ([QUICK] if quick else [SMALL, BASE])]
    rows: list[dict[str, Any]] = []
    for folder in folders:
        # The time to start is that of importing, far more than that of loading: one model shows it.
        rows += Comparison(folder, corpus, quick, trained=model is not None).rows(starts=folder == folders[0])
    results.write(name_of("translation_trained" if model else "translation", quick), rows)


class Comparison:
    """All systems with one model."""

    def __init__(self, folder: Path, corpus: Corpus, quick: bool, trained: bool) -> None:
        self.folder, self.corpus, self.trained = folder, corpus, trained
        self.started = time.monotonic()
        loaded = load_model_folder(folder)
        self.tokenizer: Tokenizer = loaded.text_tokenizer
        self.width: int = loaded.config.model.width
        amounts = AMOUNTS[32] if quick else AMOUNTS.get(self.width, AMOUNTS[256])
        self.many, self.single, self.rounds = amounts
        # A model of one's own has a vocabulary of its own.
        texts = [corpus.tokenizer.decode(ids) for ids in corpus.test[: self.many]]
        self.sources = self.tokenizer.encode_batch(texts)
        self.lengths = ANY_LENGTH if trained else MEAN_LENGTH
        self.found: list[dict[str, Any]] = []

    def rows(self, starts: bool) -> list[dict[str, Any]]:
        """Measure everything; the starts where asked to."""
        self._say("finding each system's best setting")
        contenders = self._start()
        self._say("sentences per second")
        self._throughput(contenders)
        for contender in contenders.values():
            contender.stop()
        running = {name: contender.setup for name, contender in contenders.items()}
        self._say("latency of one sentence")
        self._latency({name: setup for name, setup in running.items() if name != "JoeyNMT search"})
        if starts:
            self._say("start to first translation")
            self._first(running)
        self._say("done")
        return self.found

    def _say(self, text: str) -> None:
        print(f"d={self.width}, {time.monotonic() - self.started:.0f} s: {text}", flush=True)

    def _start(self) -> dict[str, Contender]:
        contenders: dict[str, Contender] = {}
        failed: dict[str, Exception] = {}
        for name, choices in self._setups().items():
            try:
                contenders[name] = Contender(fastest(choices, self.lengths, self._sentences(name)[:PART]), self.lengths)
            except (PeerError, NotInstallableError) as error:
                failed[name] = error
        failed |= start_all(contenders)
        for name, reason in failed.items():
            print(f"{name} is left out: {reason}", flush=True)
            self._add(name, "left out", 0.0, str(reason)[:300])
        return {name: contender for name, contender in contenders.items() if name not in failed}

    def _setups(self) -> dict[str, list[Setup]]:
        """Every system, with the settings of which the best is taken."""
        cores, model = available_cores(), str(self.folder)
        setups = {name: [heedful_setup(self.folder, precision, cores)] for name, precision in OURS.items()}
        setups["heedful, torch engine"] = [heedful_setup(self.folder, "fp32", cores, "torch")]
        for precision in ("int8", "float32"):
            made = exported(self.folder, precision)
            setups[f"CTranslate2 {precision}"] = ctranslate2_setups(made, precision, cores)
        setups["Hugging Face generate"] = [
            Setup(
                "huggingface_translation",
                "huggingface",
                threads,
                {"model": model, "threads": threads},
                32,
                replicas,
                f"{replicas} processes, {threads} threads, batch 32",
            )
            for replicas, threads in ((1, cores), (cores, 1))
        ]
        arguments = {"model": model, "threads": cores}
        words = f"{cores} threads, batch 32"
        setups["JoeyNMT search"] = [Setup("joeynmt_translation", "joeynmt", cores, arguments, 32, words=words)]
        return setups

    def _sentences(self, name: str) -> list[list[int]]:
        return self.sources if self.trained else self.sources[: self.many // SHARES.get(name, 1)]

    def _throughput(self, contenders: dict[str, Contender]) -> None:
        speeds = interleaved(
            {
                name: lambda n=name: len(self._sentences(n)) / contenders[n].seconds(self._sentences(n))
                for name in contenders
            },
            self.rounds,
        )
        for name, speed in speeds.items():
            contender = contenders[name]
            details = {"setting": contender.setup.words, "peer_versions": contender.versions}
            self._add(name, "speed", speed, "sentences/s", **details)
            for ours in OURS if not name.startswith("heedful") else ():
                ratio = speeds[ours].median / speed.median
                bar = f">= {REQUIRED[name]}" if name in REQUIRED and not self.trained else "-"
                self._add(name, f"{ours} / this", ratio, "x", required=bar)
            length = sum(map(len, contender.outputs)) / len(contender.outputs)
            self._add(name, "output speed", speed.median * length, "tokens/s")
            self._add(name, "peak memory", contender.peak_megabytes(), "MB")
            if self.trained:  # random weights choose among near equals, and so by how one ends
                self._agreement(name, contender.outputs, contenders["heedful"].outputs)

    def _agreement(self, name: str, outputs: list[list[int]], ours: list[list[int]]) -> None:
        same = sum(a == b for a, b in zip(outputs, ours, strict=True)) / len(outputs)
        self._add(name, "same as heedful", 100 * same, "% of sentences")
        if self.corpus.references:
            bleu, reference = self._bleu(outputs), self._bleu(ours)
            self._add(name, "BLEU", bleu, f"{len(outputs)} sentences")
            if name == "heedful int8":
                self._add(name, "BLEU lost by int8", reference - bleu, "points", "<= 0.2")
            elif not name.startswith("heedful") and "int8" not in name:
                self._add(name, "BLEU, distance to heedful's", abs(reference - bleu), "points", "<= 0.1")

    def _bleu(self, outputs: list[list[int]]) -> float:
        assert self.corpus.references is not None
        texts = [self.tokenizer.decode(ids) for ids in outputs]
        return sacrebleu.BLEU().corpus_score(texts, [self.corpus.references[: len(texts)]]).score

    def _latency(self, running: dict[str, Setup]) -> None:
        """One sentence after the other; the systems that can put several threads to one sentence do."""
        cores = available_cores()
        single: dict[str, Setup] = {}
        for name, setup in running.items():
            if name.startswith("CTranslate2"):
                model, precision = Path(setup.arguments["model"]), setup.arguments["precision"]
                single |= {f"{name}, {each.words}": each for each in ctranslate2_single(model, precision, cores)}
            elif name.endswith("torch engine"):
                single[name] = replace(setup, arguments={**setup.arguments, "workers": 1}, words="1 thread")
            elif name in OURS:
                single[name] = replace(setup, words=f"{cores} threads")
            else:
                arguments = {**setup.arguments, "threads": cores}
                single[name] = replace(setup, threads=cores, arguments=arguments, replicas=1, words=f"{cores} threads")
        contenders = {name: Contender(setup, self.lengths) for name, setup in single.items()}
        start_all(contenders)

        def milliseconds(name: str) -> float:
            return 1e3 * sum(contenders[name].seconds([each], batch=1) for each in sentences) / len(sentences)

        sentences = self.sources[: self.single]
        times = interleaved({name: lambda n=name: milliseconds(n) for name in contenders}, self.rounds)
        for name, each in times.items():
            self._add(name, "latency of one sentence", each, "ms", setting=single[name].words)
            contenders[name].stop()

    def _first(self, running: dict[str, Setup]) -> None:
        """From process start to first translation; for heedful by its own command."""
        measures = {"heedful translate": self._first_by_command}
        for name, setup in running.items():
            if not name.startswith("heedful"):
                one = replace(setup, replicas=1)
                measures[name] = lambda s=one: first_translation_seconds(s, self.lengths, self.sources[0])  # type: ignore[misc]
        # All have been started before, so that what they read is in memory.
        times = interleaved(measures, max(1, self.rounds - 1), warm=True)
        for name, each in times.items():
            self._add(name, "start to first translation", each, "s")
        for option in ("--help", "--version"):
            answer = interleaved({option: lambda o=option: _seconds("-m", "heedful", o)}, self.rounds)[option]
            self._add(f"heedful {option}", "time to answer", answer, "s", "<= 0.3")

    def _first_by_command(self) -> float:
        text = self.tokenizer.decode(self.sources[0]) + "\n"
        started = time.perf_counter()
        command = [sys.executable, "-m", "heedful", "translate", str(self.folder), "--max-length", str(self.lengths[1])]
        subprocess.run(command, input=text, text=True, check=True, capture_output=True)
        return time.perf_counter() - started

    def _add(
        self, system: str, what: str, value: float | Measured, unit: str, required: str = "-", **details: Any
    ) -> None:
        if isinstance(value, Measured):
            details |= {"low": round(value.low, 2), "high": round(value.high, 2)}
            value = value.median
        size = f"d={self.width}"
        measure, seconds = f"{size}: {system}: {what}", time.monotonic() - self.started
        row = results.row(measure, round(value, 3), unit, required, seconds, COMMAND)
        weights = self.folder.name if self.trained else "random weights"
        data = {"data": self.corpus.kind, "weights": weights}
        self.found.append(row | {"size": size, "system": system, "what": what, **data, **details})


def _seconds(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
