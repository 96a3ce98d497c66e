"""The classifier demo: which language is a phrase in?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.files import write_file
from heedful.tasks.classification import Classification
from heedful.tasks.classification_metrics import LabelEvaluation
from heedful.tasks.demo_folder import fresh_folder
from heedful.tasks.label_tables import confusion_lines
from heedful.tasks.labelling.classifier import Classifier
from heedful.tasks.labelling.evaluation import evaluate_labels
from heedful.tasks.labelling.job import ClassifierData
from heedful.tasks.loading import load
from heedful.tasks.translation.demo_corpus import generate_pairs
from heedful.training.config import seconds
from heedful.training.run import RunObserver, train
from heedful.training.run_config import RunConfig

WHAT = "phrases in eight languages, generated from the Unicode CLDR: which language is each in?"
# Closely related, so that there is something to learn; English is the eighth.
LANGUAGES = ("cs", "da", "de", "es", "nl", "pt", "sv")
PHRASES = 8000
UNSEEN = 1000
SHOWN_EXAMPLES = 8
SETTINGS: dict[str, Any] = {
    "model": {"vocabulary_size": 2000, "max_length": 128, "stack": {"dropout": 0.1}, "token_dropout": 0.1},
    "training": {"batches": {"tokens_per_step": 1500}, "saving": {"validations": 3}},
}


@dataclass(frozen=True)
class ClassifierDemoResult:
    """What the demo shows at its end: unseen phrases with the right language and the answer, and the scores."""

    examples: list[tuple[str, str, Classification]]
    evaluation: LabelEvaluation
    page: Path

    @property
    def learned(self) -> bool:
        """Whether the training was long enough for most answers to be right."""
        return self.evaluation.accuracy > 0.5


def run_demo(out: Path, budget: str, seed: int, observer: RunObserver) -> ClassifierDemoResult:
    """Generate phrases, train on most of them, and classify the others."""
    seconds(budget)  # an error must be noticed before the last demo is removed
    phrases = labelled_phrases(seed)
    folder = fresh_folder(out)
    for name, part in (("test", phrases[:UNSEEN]), ("train", phrases[UNSEEN:])):
        lines = "".join(f"{language}\t{phrase}\n" for phrase, language in part)
        (folder / f"{name}.tsv").write_text(lines, encoding="utf-8", newline="\n")
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "limit": {"budget": budget}}}
    data = ClassifierData(data=(str(folder / "train.tsv"),))
    if not train(RunConfig(str(out), data, "encoder_tiny", settings), observer).finished:
        raise KeyboardInterrupt
    model = load(out)
    assert isinstance(model, Classifier)
    evaluation = evaluate_labels(model, [str(folder / "test.tsv")], 64, observer.message)
    shown = phrases[:SHOWN_EXAMPLES]
    answers = model.classify([phrase for phrase, _ in shown])
    page = out / "attention.html"
    write_file(page, model.attention(shown[0][0]).html())
    examples = [(phrase, language, answer) for (phrase, language), answer in zip(shown, answers, strict=True)]
    return ClassifierDemoResult(examples, evaluation, page)


def labelled_phrases(seed: int) -> list[tuple[str, str]]:
    """Phrases with their languages, in turn; what two languages write alike is left out."""
    written = {language: generate_pairs(language, PHRASES, seed) for language in LANGUAGES}
    columns = [("en", [english for english, _ in written[LANGUAGES[0]]])]
    columns += [(language, [translation for _, translation in pairs]) for language, pairs in written.items()]
    phrases: dict[str, str] = {}
    for number, row in enumerate(zip(*(texts for _, texts in columns), strict=True)):
        # Each value in one language only: the model should learn how it is written, not what it is.
        place = number % len(columns)
        if row.count(row[place]) == 1:
            phrases[row[place]] = columns[place][0]
    return list(phrases.items())


def show(console: Console, result: ClassifierDemoResult, folder: str) -> None:
    """Some unseen phrases with the answers, the scores, what was taken for what, and what to try next."""
    table = Table(title="phrases that were not in the training data", title_justify="left")
    for column in ("phrase", "language", "answer", "probability", ""):
        table.add_column(column, overflow="fold")
    for phrase, language, answer in result.examples:
        mark = Text("=", style="green") if answer.label == language else Text("≠", style="red")
        table.add_row(Text(phrase), language, answer.label, f"{answer.probability:.1%}", mark)
    console.print(table)
    evaluation = result.evaluation
    console.print(f"right answers: {evaluation.accuracy:.1%} of {evaluation.count:,} unseen phrases", highlight=False)
    console.print(Text("\n".join(confusion_lines(evaluation)) + "\n"), soft_wrap=True)
    console.print(Text(f"what it attended to in the first phrase: open {result.page} in a browser\n"), soft_wrap=True)
    console.print(
        Text(f"""next:
  heedful classify {folder} "5 de maio" --top 3
  heedful embed {folder} --out vectors.npy < your.txt
  heedful train classifier --data your.tsv --out my-classifier"""),
        soft_wrap=True,
    )
