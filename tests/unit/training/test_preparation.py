"""Data that is prepared before a run: the run is the one that prepared its data itself, and nothing is done twice."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import UserError
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.translation.job import TranslationData
from heedful.training.preparation import prepare
from heedful.training.run_config import RunConfig

pytestmark = pytest.mark.usefixtures("no_flushing")

STACK = {"num_layers": 1, "dropout": 0.1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 17}}
TRAINING = {
    "limit": {"steps": 6},
    "batches": {"tokens_per_step": 200, "tokens_per_batch": 100},
    "machine": {"device": "cpu", "workers": 1, "threads": 1},
    "saving": {"validations": 1, "checkpoint_seconds": 0.0},
}
MODELS: dict[type[Any], dict[str, Any]] = {
    TextData: {"width": 12, "max_length": 16, "stack": STACK},
    TranslationData: {"width": 12, "encoder": STACK, "decoder": STACK, "vocabulary_size": 300},
}


class Watcher:
    """Notes what is told; stops in a stage of the preparation, or sends a signal at a step, if asked to."""

    def __init__(self, stop_in: str | None = None, signal_at: int | None = None) -> None:
        self.stop_in, self.signal_at = stop_in, signal_at
        self.stages: list[str] = []
        self.messages: list[str] = []

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        self.stages.append(stage)
        if stage == self.stop_in:
            raise KeyboardInterrupt

    def prepared(self, messages: Any) -> None:
        self.messages += messages

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        if row["step"] == self.signal_at:
            os.kill(os.getpid(), signal.SIGINT)

    def chosen(self, *_: Any) -> None: ...
    def validation(self, *_: Any) -> None: ...
    def message(self, *_: Any) -> None: ...


@pytest.fixture
def jobs(tmp_path: Path, make_sentences: Callable) -> dict[str, Any]:
    for name, count in (("a", 60), ("b", 40)):
        lines = make_sentences(count, seed=count)
        (tmp_path / f"{name}.en").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{name}.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    sides = [tuple(str(tmp_path / f"{name}.{side}") for name in "ab") for side in ("en", "de")]
    return {
        "text": TextData(sides[0]),
        "mixed text": TextData(sides[0], weights=(1.0, 3.0)),
        "pairs": TranslationData(*sides),
        "mixed pairs": TranslationData(*sides, weights=(1.0, 3.0)),
    }


def run_of(job: Any, out: Path, **machine: Any) -> RunConfig:
    training = {**TRAINING, "machine": {**TRAINING["machine"], **machine}}
    return RunConfig(str(out), job, settings={"model": MODELS[type(job)], "training": training})


def outcome(out: Path) -> tuple[list[tuple[str, int, float]], bytes]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows], (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["text", "mixed text", "pairs", "mixed pairs"])
def test_a_run_on_prepared_data_is_the_run_that_prepares_it(name: str, jobs: dict[str, Any], tmp_path: Path) -> None:
    first = prepare(run_of(jobs[name], tmp_path / "two"), Watcher())
    again = prepare(run_of(jobs[name], tmp_path / "two"), Watcher())
    assert (first.was_there, again.was_there) == (False, True)
    assert again.size == sum(path.stat().st_size for path in again.folder.rglob("*") if path.is_file()) > 1000
    watcher = Watcher()
    heedful.train(run_of(jobs[name], tmp_path / "two"), watcher)
    assert set(watcher.stages) <= {"comparing files"}
    heedful.train(run_of(jobs[name], tmp_path / "one"), Watcher())
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")


@pytest.mark.parametrize("name", ["mixed text", "mixed pairs"])
def test_a_mixture_that_is_stopped_and_continued_is_the_same_run(
    name: str, jobs: dict[str, Any], tmp_path: Path
) -> None:
    heedful.train(run_of(jobs[name], tmp_path / "whole"), Watcher())
    for step in (2, 5, None):
        heedful.train(run_of(jobs[name], tmp_path / "stopped"), Watcher(signal_at=step))
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("stage", ["reading", "learning subwords", "encoding"])
def test_an_interrupted_preparation_leaves_nothing_half_done(stage: str, jobs: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare(run_of(jobs["pairs"], tmp_path / "out"), Watcher(stop_in=stage))
    assert {path.name for path in (tmp_path / "out" / "run").iterdir()} <= {"lock", "data-report.jsonl", "digests.json"}
    (tmp_path / "out" / "run" / "prepared.partial").mkdir()  # as a kill leaves it
    assert not prepare(run_of(jobs["pairs"], tmp_path / "out"), Watcher()).was_there
    prepare(run_of(jobs["pairs"], tmp_path / "other"), Watcher())
    for file in (tmp_path / "other" / "run" / "prepared").rglob("*.*"):
        same = tmp_path / "out" / file.relative_to(tmp_path / "other")
        assert same.read_bytes() == file.read_bytes(), file


def test_the_device_of_the_run_need_not_be_here(jobs: dict[str, Any], tmp_path: Path) -> None:
    done = prepare(run_of(jobs["text"], tmp_path / "out", device="cuda"), Watcher())
    assert done.data.num_tokens > 100


def test_what_does_not_go_with_a_run_that_has_begun_is_refused(jobs: dict[str, Any], tmp_path: Path) -> None:
    heedful.train(run_of(jobs["text"], tmp_path / "out"), Watcher())
    assert prepare(run_of(jobs["text"], tmp_path / "out"), Watcher()).was_there
    with pytest.raises(UserError, match=r"data\.weights was None and is now \[1\.0, 3\.0\]"):
        prepare(run_of(jobs["mixed text"], tmp_path / "out"), Watcher())
    (tmp_path / "a.en").write_text("something else\n")
    with pytest.raises(UserError, match="have changed since the run"):
        prepare(run_of(jobs["text"], tmp_path / "out"), Watcher())


def test_mistakes_are_found_before_anything_is_read(jobs: dict[str, Any], tmp_path: Path) -> None:
    run = RunConfig(str(tmp_path / "out"), jobs["text"], settings={"model": {"widht": 12}})
    with pytest.raises(UserError, match="widht"):
        prepare(run, Watcher())
    with pytest.raises(UserError, match="nowhere"):
        prepare(RunConfig(str(tmp_path / "out"), TextData(str(tmp_path / "nowhere"))), Watcher())
    assert not (tmp_path / "out").exists()
