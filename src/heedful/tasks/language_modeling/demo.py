"""The language-model demo: the Python language reference, which comes with every Python as its help texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from rich.console import Console
from rich.text import Text

from heedful.files import write_file
from heedful.tasks.demo_folder import fresh_folder
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.language_modeling.pipeline import LanguageModel, TextScore
from heedful.tasks.loading import load
from heedful.training.config import seconds
from heedful.training.run import RunObserver, train
from heedful.training.run_config import RunConfig

WHAT = "the Python language reference, as `help()` shows it, to be continued"
HELD_OUT_EVERY = 20
PROMPTS = ("The statement", "If the object is", "class")
SETTINGS: dict[str, Any] = {
    "model": {"vocabulary_size": 1000, "max_length": 128, "stack": {"dropout": 0.0}},
    "training": {
        "batches": {"tokens_per_step": 2048},
        "saving": {"validations": 4},
        "schedule": {"learning_rate": 0.004},
    },
}


@dataclass(frozen=True)
class LanguageDemoResult:
    """What the demo shows at its end."""

    texts: list[tuple[str, str]]
    score: TextScore
    page: Path

    @property
    def learned(self) -> bool:
        """Whether the training was long enough for the text to be more than frequent subwords in random order."""
        return self.score.bits_per_byte < 3.0


def run_demo(out: Path, budget: str, seed: int, observer: RunObserver) -> LanguageDemoResult:
    """Learn from most of the help texts, measure on the others, and write some text."""
    seconds(budget)  # an error must be noticed before the last demo is removed
    folder = fresh_folder(out)
    held_out = []
    for number, (name, text) in enumerate(sorted(topics.items())):
        if number % HELD_OUT_EVERY == seed % HELD_OUT_EVERY:
            held_out.append(text)
        part = "valid" if number % HELD_OUT_EVERY == seed % HELD_OUT_EVERY else "train"
        (folder / f"{part}-{name}.txt").write_text(text, encoding="utf-8", newline="\n")
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "limit": {"budget": budget}}}
    data = TextData(text=(str(folder / "train-*.txt"),), valid_text=(str(folder / "valid-*.txt"),))
    if not train(RunConfig(str(out), data, "language_tiny", settings), observer).finished:
        raise KeyboardInterrupt
    model = load(out)
    assert isinstance(model, LanguageModel)
    options = GenerationOptions(max_tokens=60, temperature=0.7, top_p=0.9, seed=seed)
    texts = [(prompt, found[0]) for prompt, found in zip(PROMPTS, model.generate(PROMPTS, options), strict=True)]
    page = out / "attention.html"
    write_file(page, model.attention(*texts[0]).html())
    return LanguageDemoResult(texts, model.score(held_out), page)


def show(console: Console, result: LanguageDemoResult, folder: str) -> None:
    """Some generated text, how well unseen text is predicted, and what to try next."""
    for prompt, text in result.texts:
        console.print(Text(prompt, style="bold") + Text(text, style="not bold"))
        console.print()
    console.print(
        f"held-out text: {result.score.bits_per_byte:.2f} bits per byte (perplexity {result.score.perplexity:.1f} "
        f"over {result.score.tokens:,} subwords)\n",
        highlight=False,
    )
    console.print(
        Text(f"what it attended to in the first text, and how sure it was: open {result.page} in a browser\n"),
        soft_wrap=True,
    )
    console.print(
        Text(f"""next:
  heedful generate {folder} "The value of " --temperature 0.5
  heedful generate {folder} --interactive
  heedful train language-model --text your-book.txt --out my-gpt"""),
        soft_wrap=True,
    )
