"""The demo: a model trained in about a minute and a half on phrases that are generated on the spot."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import sacrebleu

from heedful.alignment import Aligner
from heedful.data.demo_corpus import generate_pairs
from heedful.data.tokenizer import words
from heedful.errors import UserError
from heedful.jobs.translation import TranslationData
from heedful.pipelines.loading import load_translator
from heedful.pipelines.translator import Translator
from heedful.training.config import seconds
from heedful.training.run import RunObserver, train
from heedful.training.run_config import RunConfig

TRAINING_PAIRS = 20_000
UNSEEN_PAIRS = 300
# Dates and amounts follow rules: with so many examples of each there is nothing to overfit, hence no dropout.
STACK = {"num_layers": 2, "dropout": 0.0, "feed_forward": {"inner_width": 512}}
SETTINGS: dict[str, Any] = {
    "model": {"vocabulary_size": 3000, "encoder": STACK, "decoder": STACK},
    "training": {
        "batches": {"tokens_per_step": 1500},
        "saving": {"validations": 4},
        "label_smoothing": 0.05,
    },
}


@dataclass(frozen=True)
class Example:
    """An unseen phrase, its translation and the right answer."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class DemoResult:
    """What the demo shows at its end."""

    translator: Translator
    examples: list[Example]
    exact: float
    bleu: float


def run_demo(language: str, out: Path, budget: str, seed: int, observer: RunObserver) -> DemoResult:
    """Generate phrases, train on most of them, and translate the others."""
    seconds(budget)  # what is wrong is to be noticed before the last demo is removed
    pairs = generate_pairs(language, TRAINING_PAIRS + UNSEEN_PAIRS, seed)
    unseen, known = pairs[:UNSEEN_PAIRS], pairs[UNSEEN_PAIRS:]
    clear_earlier_demo(out, "run/demo.en-*.tsv")
    table = out / "run" / f"demo.en-{language}.tsv"
    table.parent.mkdir(parents=True)
    table.write_text("".join(f"{source}\t{target}\n" for source, target in known), encoding="utf-8", newline="\n")
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "limit": {"budget": budget}}}
    data = TranslationData(tsv=(str(table),), source_language="en", target_language=language)
    result = train(RunConfig(str(out), data, "translation_tiny", settings), observer)
    if not result.finished:
        raise KeyboardInterrupt
    translator = load_translator(out)
    translations = translator.translate([source for source, _ in unseen])
    examples = [Example(source, each.text, target) for (source, target), each in zip(unseen, translations, strict=True)]
    exact = sum(each.translation == each.reference for each in examples) / len(examples)
    bleu = sacrebleu.corpus_bleu([each.translation for each in examples], [[each.reference for each in examples]]).score
    return DemoResult(translator, examples, exact, bleu)


def clear_earlier_demo(out: Path, mark: str) -> None:
    """Remove the results of an earlier demo, which left files that match `mark`, and nothing else."""
    if not out.exists():
        return
    if not list(out.glob(mark)):
        raise UserError(f"{out} exists and is not of an earlier demo: choose another folder with --out")
    lock = filelock.FileLock(out / "run" / "lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(f"another demo is at work in {out}: wait for it, or choose another --out") from None
    lock.release()
    shutil.rmtree(out)


def attention_picture(
    translator: Translator, source: str, target: str
) -> tuple[list[str], list[str], list[list[float]]]:
    """Source words, target words, and how much each target word attends to each source word."""
    aligner = Aligner(translator.model, translator.tokenizer)
    encoded = [translator.tokenizer.encode(text) for text in (source, target)]
    weights = aligner.word_weights([encoded[0]], [encoded[1]])[0]
    return words(source), words(target), weights.tolist()
