"""Training goes on where memory is short."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import heedful
from heedful.inspection.run.run_record import read_run
from heedful.tasks.translation.job import TranslationData
from heedful.tasks.translation.task import TranslationTask

pytestmark = pytest.mark.slow

STACK = {"num_layers": 1, "dropout": 0.0, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 17}}
MODEL = {"width": 12, "encoder": STACK, "decoder": STACK}
# More than any machine has: the allocator refuses it as it refuses what is a little too much.
TOO_MUCH = 1 << 50


class Quiet:
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)

    def ignore(self, *_: object) -> None:
        pass

    preparing = prepared = chosen = step = validation = ignore


def test_a_batch_that_does_not_fit_is_split_and_the_run_goes_on(
    tmp_path: Path, make_sentences: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = make_sentences(400, seed=13, longest=12)
    (tmp_path / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    room, sizes, loss = 2000, [], TranslationTask.loss

    def loss_in_little_memory(task: TranslationTask, model, batch) -> tuple[Tensor, Tensor]:
        sizes.append(batch.num_tokens)
        if batch.num_tokens > room:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        return loss(task, model, batch)

    monkeypatch.setattr(TranslationTask, "loss", loss_in_little_memory)
    batches = {"tokens_per_step": 6000, "tokens_per_batch": 6000}
    machine = {"device": "cpu", "workers": 1, "threads": 1}
    training = {"limit": {"steps": 3}, "batches": batches, "machine": machine, "saving": {"validations": 1}}
    said = Quiet()
    job, settings = TranslationData(tsv=(str(tmp_path / "a.tsv"),)), {"model": MODEL, "training": training}
    result = heedful.train(heedful.RunConfig(str(tmp_path / "out"), job, settings=settings), said)
    assert result.finished
    assert [text for text in said.texts if "a batch did not fit into memory" in text], said.texts
    assert sizes[0] > room and max(sizes[-8:]) <= room  # the steps that follow begin with small parts
    rows = read_run(tmp_path / "out").steps
    assert [row["step"] for row in rows] == [1, 2, 3] and all(math.isfinite(row["loss"]) for row in rows)
