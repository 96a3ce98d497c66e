"""heedful's engine beside CTranslate2 and Hugging Face: whatever it is required to reach, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks import results
from benchmarks.speed import engine_decoding, engine_gpt
from benchmarks.speed.comparisons import Comparisons
from benchmarks.speed.corpus import load_corpus
from benchmarks.speed.engine_commands import Commands
from benchmarks.speed.engine_decoding import Subject
from benchmarks.speed.environments import make_all
from benchmarks.speed.limits import name_of
from benchmarks.speed.random_model import random_model
from benchmarks.speed.sizes import BASE, QUICK, SMALL, TINY

COMMAND = "heedful bench engine"


@dataclass(frozen=True)
class Amounts:
    """How much is measured: sentences, and rounds."""

    sentences: int
    rounds: int
    single: int
    single_rounds: int
    file_rounds: int
    start_rounds: int
    memory_rounds: int
    gpt_rounds: int


FULL = Amounts(512, 5, 12, 7, 9, 15, 3, 7)
TRY = Amounts(24, 1, 2, 1, 1, 1, 1, 1)


def main(quick: bool, model: Path | None = None) -> None:
    """Measure with random weights of three sizes; a trained model takes the place of the narrowest."""
    corpus = load_corpus()
    make_all(["ctranslate2", "huggingface"])
    amounts = TRY if quick else FULL
    found = Comparisons(COMMAND, {"data": corpus.kind})
    found.say("models for all systems")
    narrow, wide = (QUICK, []) if quick else (TINY, [SMALL, BASE])
    first = Subject.of(model or random_model(narrow, corpus), corpus, trained=model is not None, fp32=quick)
    others = [Subject.of(random_model(size, corpus), corpus, trained=False, fp32=True) for size in wide]
    for subject in others or [first]:
        found.say(f"{subject.name}: many sentences")
        engine_decoding.throughput(subject, found, amounts.sentences, amounts.rounds)
    for subject in (first, *others):
        found.say(f"{subject.name}: one sentence")
        engine_decoding.latency(subject, found, amounts.single, amounts.single_rounds)
    for number, subject in enumerate((first, *others)):
        found.say(f"{subject.name}: whole commands")
        lines = amounts.sentences if quick or number else len(subject.texts)
        commands = Commands(subject, lines)
        if subject is first:
            commands.whole_file(found, corpus.references, amounts.file_rounds)
        commands.start(found, amounts.start_rounds)
        commands.memory(found, amounts.memory_rounds)
    found.say("a GPT")
    engine_gpt.measure(found, corpus.tokenizer, quick, amounts.gpt_rounds)
    found.say("done")
    results.write(name_of("engine", quick), found.rows)
