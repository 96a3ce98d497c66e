"""The demo: a model trained in about a minute and a half on phrases that are generated on the spot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.files import write_file
from heedful.tasks.demo_folder import fresh_folder
from heedful.tasks.loading import load_translator
from heedful.tasks.translation.alignment import Aligner
from heedful.tasks.translation.demo_corpus import generate_pairs
from heedful.tasks.translation.job import TranslationData
from heedful.tasks.translation.pipeline import Translator
from heedful.text.tokenizer import words
from heedful.training.config import seconds
from heedful.training.run import RunObserver, train
from heedful.training.run_config import RunConfig

WHAT = "phrases generated from the Unicode CLDR, to be translated from English"
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


SHOWN_EXAMPLES = 8
SHADES = " ░▒▓█"


@dataclass(frozen=True)
class DemoExample:
    """An unseen phrase, its translation and the right answer."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class TranslationDemoResult:
    """What the demo shows at its end."""

    translator: Translator
    examples: list[DemoExample]
    exact: float
    bleu: float
    page: Path

    @property
    def learned(self) -> bool:
        """Whether the training was long enough for most answers to be right."""
        return self.exact > 0.5

    @property
    def shown_in_detail(self) -> DemoExample:
        """An example of medium length, if there is one."""
        fitting = [each for each in self.examples if 4 <= len(each.source.split()) <= 7]
        return (fitting or self.examples)[0]


def run_demo(language: str, out: Path, budget: str, seed: int, observer: RunObserver) -> TranslationDemoResult:
    """Generate phrases, train on most of them, and translate the others."""
    seconds(budget)  # an error must be noticed before the last demo is removed
    pairs = generate_pairs(language, TRAINING_PAIRS + UNSEEN_PAIRS, seed)
    unseen, known = pairs[:UNSEEN_PAIRS], pairs[UNSEEN_PAIRS:]
    table = fresh_folder(out) / f"demo.en-{language}.tsv"
    table.write_text("".join(f"{source}\t{target}\n" for source, target in known), encoding="utf-8", newline="\n")
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "limit": {"budget": budget}}}
    data = TranslationData(tsv=(str(table),), source_language="en", target_language=language)
    if not train(RunConfig(str(out), data, "translation_tiny", settings), observer).finished:
        raise KeyboardInterrupt
    translator = load_translator(out)
    translations = translator.translate([source for source, _ in unseen])
    examples = [
        DemoExample(source, each.text, target) for (source, target), each in zip(unseen, translations, strict=True)
    ]
    exact = sum(each.translation == each.reference for each in examples) / len(examples)
    bleu = sacrebleu.corpus_bleu([each.translation for each in examples], [[each.reference for each in examples]]).score
    result = TranslationDemoResult(translator, examples, exact, bleu, out / "attention.html")
    example = result.shown_in_detail
    write_file(result.page, translator.attention(example.source, example.translation).html())
    return result


def attention_picture(
    translator: Translator, source: str, target: str
) -> tuple[list[str], list[str], list[list[float]]]:
    """Source words, target words, and how much each target word attends to each source word."""
    aligner = Aligner(translator.computation, translator.tokenizer)
    encoded = [translator.tokenizer.encode(text) for text in (source, target)]
    weights = aligner.word_weights([encoded[0]], [encoded[1]])[0]
    return words(source), words(target), weights.tolist()


def show(console: Console, result: TranslationDemoResult, folder: str) -> None:
    """The table of unseen examples, the scores, the attention picture, and what to try next."""
    table = Table(title="phrases that were not in the training data", title_justify="left")
    for column in ("English", "translation", "reference", ""):
        table.add_column(column, overflow="fold")
    for example in result.examples[:SHOWN_EXAMPLES]:
        right = example.translation == example.reference
        mark = Text("=", style="green") if right else Text("≠", style="red")
        table.add_row(Text(example.source), Text(example.translation), Text(example.reference), mark)
    console.print(table)
    count = len(result.examples)
    console.print(
        f"exact matches: {result.exact:.1%} of {count} unseen phrases; BLEU {result.bleu:.1f}\n", highlight=False
    )
    _attention(console, result)
    console.print(Text(f"every layer and head of this example: open {result.page} in a browser\n"), soft_wrap=True)
    console.print(
        Text(f"""next:
  echo 'March 3, 2031' | heedful translate {folder}
  heedful translate {folder} --nbest 3 --scores --alignment
  heedful inspect {folder} 'March 3, 2031' --out attention.html
  heedful info {folder}
  heedful demo --to fr
  heedful train translation --source your.en --target your.de --out en-de"""),
        soft_wrap=True,
    )


def _attention(console: Console, result: TranslationDemoResult) -> None:
    """Cross-attention of one example as shades."""
    example = result.shown_in_detail
    sources, targets, weights = attention_picture(result.translator, example.source, example.translation)
    table = Table(
        title="what each output word attended to (mean of all heads and layers)", title_justify="left", box=None
    )
    table.add_column("")
    for word in sources:
        table.add_column(Text(word), justify="center")
    for word, row in zip(targets, weights, strict=True):
        shades = [SHADES[min(len(SHADES) - 1, round(weight * (len(SHADES) - 1)))] * 3 for weight in row]
        table.add_row(Text(word), *(Text(shade) for shade in shades))
    console.print(table)
    console.print()
