"""Several corpora with weights, from the files to the batches of an epoch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.errors import UserError
from heedful.models.families import FAMILIES
from heedful.tasks.job import PreparedJob
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.task import LearningSettings, Task
from heedful.tasks.translation.job import TranslationData
from heedful.training.resolve import choose
from heedful.training.run_config import RunConfig

STACK = {"num_layers": 1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 17}}
MODELS: dict[str, dict[str, Any]] = {
    "encoder_decoder": {"width": 12, "encoder": STACK, "decoder": STACK},
    "decoder_only": {"width": 12, "max_length": 13, "stack": STACK},
    "xlnet": {"width": 12, "max_length": 16, "memory_length": 5, "stack": STACK},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Corpora that are told apart by their words: a1 and a2 of 150 pairs each, and b of 50, all distinct."""
    for name, word, count in (("a1", "red", 150), ("a2", "ruby", 150), ("b", "blue", 50)):
        lines = [f"{word} {number} {'and so on ' * (number % 5)}" for number in range(count)]
        (tmp_path / f"{name}.en").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{name}.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    return tmp_path


def prepare(job: Any, folder: Path, out: str, settings: dict[str, Any]) -> PreparedJob:
    job.check()
    prepared: PreparedJob = job.prepare(folder / out, settings, lambda *_: None, None)
    return prepared


def task_of(job: Any, data: PreparedJob, folder: Path, family: str) -> Task[Any]:
    settings = {"model": MODELS[family], "training": {"machine": {"device": "cpu", "workers": 1}}}
    resolved = choose(RunConfig(str(folder), job, settings=settings, family=family), data)
    torch.manual_seed(1)
    return data.task(FAMILIES[family].build(resolved.model), LearningSettings(97, 0.1, 3))


def pairs_of(folder: Path, weights: tuple[float, ...] | None) -> TranslationData:
    names = [str(folder / "a*"), str(folder / "b")]
    return TranslationData(tuple(f"{n}.en" for n in names), tuple(f"{n}.de" for n in names), weights=weights)


def test_a_translation_epoch_has_the_pairs_of_each_corpus_in_its_share(folder: Path) -> None:
    job = pairs_of(folder, (1.0, 2.0))
    data = prepare(job, folder, "mixed", {})
    plain = prepare(pairs_of(folder, None), folder, "plain", {})
    task = task_of(job, data, folder, "encoder_decoder")
    # Weights change neither what is held out nor how it is encoded.
    for part in ("train", "valid"):
        mixed_pairs, plain_pairs = getattr(data.data, part), getattr(plain.data, part)
        texts = [mixed_pairs.source_text(i) for i in range(len(mixed_pairs))]
        assert texts == [plain_pairs.source_text(i) for i in range(len(plain_pairs))]
    assert data.tokenizer.to_json() == plain.tokenizer.to_json()
    assert data.key != plain.key and "pairs_per_corpus" not in plain.data.folder.facts
    train = data.data.train
    is_blue = np.array([train.source_text(i).startswith("blue") for i in range(len(train))])
    assert data.data.summary.pairs_per_corpus == ((~is_blue).sum(), is_blue.sum())
    for epoch in range(3):
        indices = np.concatenate(task.epoch_batches(epoch))
        assert len(indices) == len(train)
        assert abs(is_blue[indices].sum() - len(train) * 2 / 3) < 1
    (mixture,) = [choice for choice in data.choices() if choice.name == "mixture of an epoch"]
    assert "a*.en 33" in mixture.value and mixture.reason == "by the weights 1, 2"
    model_config = data.model_config("encoder_decoder", task.model.config)
    assert mixture.value in data.card(model_config, "m", {})


def test_other_weights_use_the_same_prepared_pairs(folder: Path) -> None:
    first = prepare(pairs_of(folder, (1.0, 2.0)), folder, "run", {})
    again = prepare(pairs_of(folder, (5.0, 1.0)), folder, "run", {})
    assert again.key == first.key and not again.data.folder.remarks


def test_tables_are_mixed_too(folder: Path) -> None:
    for name in ("a1", "b"):
        sides = ((folder / f"{name}.{side}").read_text().splitlines() for side in ("en", "de"))
        (folder / f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in zip(*sides, strict=True)))
    job = TranslationData(tsv=(str(folder / "a1.tsv"), str(folder / "b.tsv")), weights=(1.0, 1.0))
    sizes = prepare(job, folder, "run", {}).data.summary.pairs_per_corpus
    assert 130 < sizes[0] <= 150 and 40 < sizes[1] <= 50


def text_job(folder: Path, **more: Any) -> TextData:
    names = (str(folder / "a*.en"), str(folder / "b.en"))
    return TextData(names, tokenizer="characters", **more)


@pytest.mark.parametrize("family", ["decoder_only", "xlnet"])
def test_a_text_epoch_has_the_windows_of_each_corpus_in_its_share(folder: Path, family: str) -> None:
    job = text_job(folder, weights=(1.0, 3.0))
    data = prepare(job, folder, "run", {"max_length": 13})
    task = task_of(job, data, folder, family)
    train = data.data.train
    first, second = data.data.facts["ends"]
    end = task.model.special_tokens.end
    assert second == len(train) and train[first - 1] == end == train[0]
    text = data.tokenizer.decode(train[first:].tolist())
    assert "blue" in text and "red" not in text and "ruby" not in text
    held_out = data.tokenizer.decode(data.data.valid.tolist())
    assert "blue" in held_out and "ruby" in held_out  # each corpus has its end held out
    for epoch in range(3):
        starts = np.concatenate(task.epoch_batches(epoch)) - epoch * len(train) * (family == "xlnet")
        of_second = starts >= first - 1
        assert abs(of_second.sum() - len(starts) * 3 / 4) < 1
        # No window reaches into the next corpus, and those of one corpus do not overlap.
        assert (starts[~of_second] + task.length < first).all() and (starts + task.length < second).all()
        for some in (starts[of_second], starts[~of_second]):
            assert (np.diff(np.unique(some)) >= task.length).all()
        again = np.concatenate(task.epoch_batches(epoch)) - epoch * len(train) * (family == "xlnet")
        assert again.tolist() == starts.tolist()
    task.collate(task.epoch_batches(1)[2])
    card = data.card(data.model_config(family, task.model.config), "m", {})
    assert "An epoch of its training had" in card and "75" in card


def test_a_text_without_weights_is_prepared_as_before(folder: Path) -> None:
    plain = prepare(text_job(folder), folder, "plain", {})
    assert "ends" not in plain.data.facts
    assert "ruby" not in plain.tokenizer.decode(plain.data.valid.tolist())  # the end of all text


REFUSED: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: pairs_of(folder, (1.0,)), r"has 1 number, but there are 2 corpora .* --source with its --target"),
    (lambda folder: pairs_of(folder, (1.0, -1.0)), r"the weight of .*b\.en is -1"),
    (lambda folder: text_job(folder, weights=(1.0, 2.0, 3.0)), "has 3 numbers, but there are 2 corpora"),
    (lambda folder: TextData((str(folder / "b.en"),), weights=(1.0,)), "there is only one: give --text more than once"),
    (
        lambda folder: TranslationData(
            (str(folder / "a*.en"), str(folder / "b.en")),
            (str(folder / "b.de"), str(folder / "a*.de")),
            weights=(1.0, 1.0),
        ),
        r"a\*\.en stands for 2 files, but .*b\.de for 1",
    ),
]


@pytest.mark.parametrize(("make", "expected"), REFUSED)
def test_weights_that_do_not_go_with_the_files_are_refused(
    make: Callable[[Path], Any], expected: str, folder: Path
) -> None:
    with pytest.raises(UserError, match=expected):
        make(folder).check()


def test_a_corpus_with_nothing_to_train_on_is_refused(folder: Path) -> None:
    for side in ("en", "de"):
        (folder / f"b.{side}").write_text((folder / f"a1.{side}").read_text())
    with pytest.raises(UserError, match=r"no pair of .*b\.en is left for training"):
        prepare(pairs_of(folder, (1.0, 1.0)), folder, "run", {})
    (folder / "b.en").write_text("blue\n")
    job = text_job(folder, weights=(1.0, 1.0))
    data = prepare(job, folder, "text", {"max_length": 13})
    with pytest.raises(UserError, match=r"b\.en has 6 tokens to train on, and a window of the model has 13"):
        task_of(job, data, folder, "decoder_only")
