"""A few seconds of real work: train a tiny model, save and load it, and translate with it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.errors import UserError

WORDS = ("red", "green", "blue", "white", "one", "two", "three", "dog", "cat", "bird", "fish", "tree", "sun", "sea")
LINES = [f"{first} {WORDS[place - gap]} {WORDS[place - 3]}" for gap in (4, 7, 9) for place, first in enumerate(WORDS)]
SETTINGS: dict[str, Any] = {
    "training": {"limit": {"steps": 2}, "machine": {"device": "cpu"}},
    "model": {"width": 32, "encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}},
}
BATCH_SIZES = (1, 7)
AFRESH = "reinstall heedful and torch; if that does not help, report this line"
# What to do if a step fails.
ADVICE = {
    "train": AFRESH,
    "save and load": AFRESH,
    "translate": "this processor rounds differently in other batches: only compare scores at the same --batch-size",
}


class SelfTest:
    """The steps of the test, in a folder that it may fill; each gives what it found, or raises an error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "model"

    @property
    def steps(self) -> dict[str, Callable[[], str]]:
        """The steps by their names, each of which needs those before it."""
        return {"train": self.train, "save and load": self.save_and_load, "translate": self.translate}

    def train(self) -> str:
        """Train a tiny translation model for two steps."""
        from rich.console import Console

        from heedful.tasks.translation.job import TranslationData
        from heedful.training.display import RunDisplay
        from heedful.training.run import train
        from heedful.training.run_config import RunConfig

        for name in ("a.en", "a.de"):
            (self.folder / name).write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
        data = TranslationData(source=(str(self.folder / "a.en"),), target=(str(self.folder / "a.de"),))
        run = RunConfig(str(self.model), data, "translation_tiny", SETTINGS)
        loss = train(run, RunDisplay(Console(file=io.StringIO()))).best_loss
        if loss is None or not 0 < loss < 100:
            raise UserError(f"the loss after two steps is {loss}")
        return f"two steps of a tiny model, loss {loss:.3f}"

    def save_and_load(self) -> str:
        """Load the model, save it elsewhere, load that, and compare all weights."""
        import torch

        from heedful.model_folder import load_model_folder, save_model_folder

        first = load_model_folder(self.model)
        save_model_folder(self.folder / "copy", first.network, first.tokenizer, first.config, "")
        weights, others = first.network.state_dict(), load_model_folder(self.folder / "copy").network.state_dict()
        common = weights.keys() & others.keys()
        different = [
            name for name in {**weights, **others} if name not in common or not torch.equal(weights[name], others[name])
        ]
        if different:
            raise UserError(f"weights differ after they were saved and loaded: {', '.join(different[:3])}")
        return f"{len(weights)} tensors, equal to the last bit"

    def translate(self) -> str:
        """Translate at two batch sizes, and compare texts and scores."""
        from heedful.tasks.computing import Computing
        from heedful.tasks.loading import load_translator

        translator = load_translator(str(self.model), Computing("cpu"))
        lines = [" ".join(WORDS[: 1 + place % 3]) for place in range(len(WORDS))]
        found = [
            [
                (each.text, each.score, each.token_scores)
                for each in translator.translate(lines, beam=2, batch_size=size)
            ]
            for size in BATCH_SIZES
        ]
        batches = f"batches of {BATCH_SIZES[0]} and of {BATCH_SIZES[1]}"
        if found[0] == found[1]:
            return f"{len(lines)} lines, equal to the last bit in {batches}"
        texts, others = ([text for text, _, _ in each] for each in found)
        if texts != others:
            raise UserError(f"translations differ between {batches}")
        largest = max(abs(first[1] - second[1]) for first, second in zip(*found, strict=True))
        raise UserError(f"scores differ by up to {largest:.1g} between {batches}; the texts are equal")
