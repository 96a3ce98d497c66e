"""heedful's engine beside CTranslate2, tokens in and tokens out: many sentences, and one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.speed.comparisons import Comparisons, Goal
from benchmarks.speed.contender import ANY_LENGTH, BEAM, MEAN_LENGTH, Contender, start_all
from benchmarks.speed.corpus import Corpus
from benchmarks.speed.engine_goals import LATENCY, THROUGHPUT
from benchmarks.speed.measuring import interleaved
from benchmarks.speed.setups import ctranslate2_setups, ctranslate2_single, exported, fastest, heedful_setup
from heedful.machine.cores import available_cores
from heedful.model_folder import check_weights, load_tokenizer, read_config

# Ours -> CTranslate2's.
PRECISIONS = {"int8": "int8", "fp32": "float32"}


@dataclass(frozen=True)
class Subject:
    """A model that both systems run: its folder, and as CTranslate2 has it by its names of precisions."""

    name: str
    width: int
    folder: Path
    exports: dict[str, Path]
    trained: bool
    sources: list[list[int]]
    texts: list[str]

    @classmethod
    def of(cls, folder: Path, corpus: Corpus, *, trained: bool, fp32: bool) -> Subject:
        """A model folder, with the test sentences in its own subwords."""
        config = read_config(folder)
        tokenizer = load_tokenizer(folder, config, check_weights(folder).metadata)
        texts = [corpus.tokenizer.decode(ids) for ids in corpus.test]
        width, layers = config.model.width, (config.model.encoder.num_layers, config.model.decoder.num_layers)
        name = f"d={width}, {layers[0]}+{layers[1]}{', trained' if trained else ''}"
        exports = {"int8": exported(folder, "int8")} | ({"float32": exported(folder)} if fp32 else {})
        return cls(name, width, folder, exports, trained, tokenizer.encode_batch(texts), texts)

    @property
    def lengths(self) -> tuple[int, int]:
        """The fewest and the most tokens of a translation."""
        return ANY_LENGTH if self.trained else MEAN_LENGTH


def throughput(subject: Subject, found: Comparisons, sentences: int, rounds: int) -> None:
    """Sentences a second on all cores, beam 5; all four take turns."""
    cores, sources = available_cores(), subject.sources[:sentences]
    contenders = {}
    for ours, theirs in PRECISIONS.items():
        contenders[f"heedful {ours}"] = Contender(heedful_setup(subject.folder, ours, cores), subject.lengths)
        choices = ctranslate2_setups(subject.exports[theirs], theirs, cores)
        best = fastest(choices, subject.lengths, sources[: sentences // 4])
        contenders[f"CTranslate2 {theirs}"] = Contender(best, subject.lengths)
    _start(contenders)

    def speed(name: str) -> float:
        return len(sources) / contenders[name].seconds(sources)

    speeds = interleaved({name: partial(speed, name) for name in contenders}, rounds)
    for ours, theirs in PRECISIONS.items():
        own, other = contenders[f"heedful {ours}"], contenders[f"CTranslate2 {theirs}"]
        found.add(
            f"{subject.name}: sentences a second, {ours}, beam {BEAM}",
            f"CTranslate2 {theirs}",
            "speed",
            speeds[f"heedful {ours}"],
            speeds[f"CTranslate2 {theirs}"],
            "sentences/s",
            THROUGHPUT.get((ours, subject.width), Goal()),
            setting=other.setup.words,
            peer_versions=other.versions,
            output_tokens=[sum(map(len, each.outputs)) for each in (own, other)],
        )
    _stop(contenders)


def latency(subject: Subject, found: Comparisons, sentences: int, rounds: int) -> None:
    """Milliseconds of one sentence, one after the other, in int8."""
    cores, sources = available_cores(), subject.sources[:sentences]
    ours = Contender(heedful_setup(subject.folder, "int8", cores), subject.lengths)
    choices = {
        setup.words: Contender(setup, subject.lengths)
        for setup in ctranslate2_single(subject.exports["int8"], "int8", cores)
    }
    contenders = {"heedful": ours, **choices}
    _start(contenders)

    def milliseconds(name: str, beam: int) -> float:
        return 1e3 * sum(contenders[name].seconds([each], batch=1, beam=beam) for each in sources) / len(sources)

    for beam in (BEAM, 1):
        times = interleaved({name: partial(milliseconds, name, beam) for name in contenders}, rounds)
        # All of theirs take part in all rounds: which number of threads is best can change from one to the next.
        best = min(choices, key=lambda name: times[name].median)
        found.add(
            f"{subject.name}: one sentence, int8, {'greedy' if beam == 1 else f'beam {beam}'}",
            "CTranslate2 int8",
            "time",
            times["heedful"],
            times[best],
            "ms",
            LATENCY,
            setting=best,
            peer_versions=contenders[best].versions,
        )
    _stop(contenders)


def _start(contenders: dict[str, Contender]) -> None:
    failed = start_all(contenders)
    for error in failed.values():
        raise error


def _stop(contenders: dict[str, Contender]) -> None:
    for contender in contenders.values():
        contender.stop()
