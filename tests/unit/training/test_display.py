"""What a run says: in the units of its task, and nothing that does not come true."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import heedful
from heedful.tasks.image_classification.job import ImageData
from heedful.tasks.labelling.job import ClassifierData, TaggerData
from heedful.training.display import RunDisplay

STACK = {"num_layers": 1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 24}}
TRAINING = {
    "batches": {"tokens_per_step": 320},
    "machine": {"device": "cpu", "workers": 1, "threads": 1},
    "saving": {"validations": 3},
}


def train(folder: Path, data: Any, limit: dict[str, Any]) -> str:
    output = io.StringIO()
    settings = {"model": {"width": 16, "stack": STACK}, "training": {**TRAINING, "limit": limit}}
    heedful.train(
        heedful.RunConfig(str(folder / "out"), data, settings=settings), RunDisplay(Console(file=output, width=200))
    )
    return output.getvalue()


def write_images(folder: Path) -> str:
    random = np.random.default_rng(1)
    for label in ("dark", "light"):
        (folder / label).mkdir(parents=True)
        for number in range(40):
            pixels = random.integers(0, 128, (12, 12, 3), np.uint8) + (128 if label == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / label / f"{number}.png")
    return str(folder)


JOBS: dict[str, Callable[[Path], Any]] = {
    "tokens": lambda folder: heedful.TextData(text=(str(folder / "lines.txt"),)),
    "hidden tokens": lambda folder: heedful.MaskedTextData(text=(str(folder / "lines.txt"),)),
    "texts": lambda folder: ClassifierData(data=(str(folder / "labels.tsv"),)),
    "words": lambda folder: TaggerData(data=(str(folder / "tags.tsv"),)),
    "images": lambda folder: ImageData(images=write_images(folder / "images")),
}


@pytest.fixture
def files(tmp_path: Path, make_sentences) -> Path:
    lines = make_sentences(200, seed=7)
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "labels.tsv").write_text("".join(f"{len(line.split()) % 3}\t{line}\n" for line in lines))
    words = ("".join(f"{word}\t{len(word)}\n" for word in line.split()) for line in lines)
    (tmp_path / "tags.tsv").write_text("\n".join(words))
    return tmp_path


@pytest.mark.parametrize("unit", JOBS)
def test_the_speed_is_in_the_units_of_the_task(files: Path, unit: str) -> None:
    said = train(files, JOBS[unit](files), {"steps": 1})
    assert re.search(rf"  {unit}/s [\d,]+", said), said
    rows = [json.loads(line) for line in (files / "out" / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["unit"] == unit


def test_the_table_of_a_budget_says_what_its_validations_take(files: Path) -> None:
    said = train(files, JOBS["texts"](files), {"budget": "0.01s"})
    assert re.search(r"validation +│ at the end, and up to 2 times before +│ those before in 5% of the time", said)
    assert said.count("validation at step") == 1


def test_a_budget_that_the_preparation_used_up_is_warned_of_at_the_end(files: Path) -> None:
    said = train(files, JOBS["texts"](files), {"budget": "0.01s"})
    last = said.rstrip().splitlines()[-1]
    assert re.fullmatch(
        r"warning: preparing the data took \S+( s)? of the budget of 0\.01 s: only 1 step was trained; "
        r"give a longer --budget",
        last,
    ), said


def test_a_run_with_time_to_train_is_not_warned_of_its_budget(files: Path) -> None:
    from heedful.training.config import LimitConfig, SavingConfig
    from heedful.training.limits import Clock, Limit
    from heedful.training.run_state import RunState

    limit, state = Limit(LimitConfig(budget="1m"), SavingConfig(), Clock()), RunState()
    state.began, state.position.step = 29.0, 500
    assert limit.warning_of_preparation(state) is None
    state.began = 58.0
    assert "took 0:58 of the budget of 1:00: only 500 steps were trained" in str(limit.warning_of_preparation(state))
    assert Limit(LimitConfig(steps=3), SavingConfig(), Clock()).warning_of_preparation(state) is None


@pytest.mark.parametrize(("steps", "table"), [(1, "once, at the end"), (2, "2 times"), (4, "3 times")])
def test_the_table_promises_no_more_validations_than_there_are_steps(files: Path, steps: int, table: str) -> None:
    said = train(files, JOBS["texts"](files), {"steps": steps})
    assert re.search(rf"validation +│ {table} ", said), said
    assert said.count("validation at step") == min(steps, 3)
