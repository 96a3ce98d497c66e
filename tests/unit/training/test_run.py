"""A run from files to a model folder: what it leaves behind, and what it refuses before it touches anything."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.model_folder import load_model_folder
from heedful.tasks.language_modeling.job import TextData
from heedful.training.run_config import RunConfig

pytestmark = pytest.mark.usefixtures("no_flushing")

STACK = {"num_layers": 1, "dropout": 0.1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 17}}
SETTINGS: dict[str, Any] = {
    "model": {"width": 12, "max_length": 16, "stack": STACK},
    "training": {
        "limit": {"steps": 3},
        "batches": {"tokens_per_step": 200, "tokens_per_batch": 100},
        "machine": {"device": "cpu", "workers": 1, "threads": 1},
        "saving": {"validations": 1, "checkpoint_seconds": 0.0},
    },
}
Train = Callable[..., Any]


class Events:
    """Keeps the names of what a run tells of, and its messages; can send a signal at a step."""

    def __init__(self, signal_at: int | None = None) -> None:
        self.names: list[str] = []
        self.texts: list[str] = []
        self.resumed_at: int | None = None
        self.signal_at = signal_at

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        self.names.append("preparing")

    def prepared(self, messages: Any) -> None:
        self.names.append("prepared")

    def chosen(self, choices: Any, resumed_at: int | None) -> None:
        self.names.append("chosen")
        self.resumed_at = resumed_at
        assert {"preset", "model", "end", "vocabulary"} <= {each.name for each in choices}

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        self.names.append("step")
        if row["step"] == self.signal_at:
            os.kill(os.getpid(), signal.SIGINT)

    def validation(self, row: dict[str, Any], examples: Any) -> None:
        self.names.append("validation")

    def message(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def train(tmp_path: Path, make_sentences: Callable) -> Train:
    (tmp_path / "text.txt").write_text("\n".join(make_sentences(40, seed=3)) + "\n")

    def run(events: Events | None = None, out: str = "out", **changes: Any) -> Any:
        text = changes.pop("text", "text.txt")
        settings = {**SETTINGS, "training": {**SETTINGS["training"], **changes.pop("training", {})}}
        job = TextData(str(tmp_path / text), tokenizer="characters")
        return heedful.train(RunConfig(str(tmp_path / out), job, settings=settings, **changes), events or Events())

    return run


def test_a_run_leaves_a_model_folder_and_tells_what_happens_in_order(train: Train, tmp_path: Path) -> None:
    events = Events()
    result = train(events)
    assert result.finished and result.folder == tmp_path / "out"
    told = list(dict.fromkeys(events.names))
    assert told == ["preparing", "prepared", "chosen", "step", "validation"] and events.names.count("step") == 3
    assert load_model_folder(tmp_path / "out").config.task == "language_model"
    rows = [json.loads(line) for line in (tmp_path / "out" / "run" / "metrics.jsonl").read_text().splitlines()]
    assert result.best_loss == min(row["loss"] for row in rows if row["kind"] == "validation")
    assert not filelock.FileLock(tmp_path / "out" / "run" / "lock").is_locked


def test_a_signal_lets_the_step_end_and_the_same_call_goes_on(train: Train, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert not train(Events(signal_at=2)).finished
    assert signal.getsignal(signal.SIGINT) is before
    again = Events()
    assert train(again).finished and again.resumed_at == 2 and again.names.count("step") == 1
    train(out="whole")
    ours, others = (tmp_path / out / "model.safetensors" for out in ("out", "whole"))
    assert ours.read_bytes() == others.read_bytes()


def test_a_finished_run_writes_its_model_again_if_that_is_gone(train: Train, tmp_path: Path) -> None:
    train()
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    (tmp_path / "out" / "model.safetensors").unlink()
    events = Events()
    assert train(events).finished and "step" not in events.names
    assert any("written again from the last checkpoint" in text for text in events.texts)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights


def test_weights_that_were_never_validated_do_not_take_the_place_of_the_best_ones(train: Train, tmp_path: Path) -> None:
    train()
    checkpoint = tmp_path / "out" / "run" / "checkpoints" / "step-000000003"
    state = json.loads((checkpoint / "state.json").read_text())
    assert state["validation_steps"] == [3] and state["validations_since_best"] == 0
    # As an earlier version left it that ended without a last validation.
    (checkpoint / "checksums.json").unlink()
    (checkpoint / "state.json").write_text(json.dumps({**state, "validation_steps": [2]}))
    train()
    (tmp_path / "out" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has finished, but .*does not have the weights that were best: put back"):
        train()
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_what_is_refused_leaves_no_run_behind(train: Train, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        train(text="nowhere.txt")
    with pytest.raises(UserError, match="unknown preset 'tiny'"):
        train(preset="tiny")
    with pytest.raises(UserError, match="unknown family 'vision' for this job"):
        train(family="vision")
    with pytest.raises(UserError, match=r"schedule.kind is decay, which needs"):
        train(training={"schedule": {"kind": "decay", "learning_rate": None}})
    events = Events()
    with pytest.raises(UserError, match="asks for tensor 7 = 7 processes, but there is 1"):
        train(events, training={"parallel": {"tensor": 7}})
    assert events.names == [] and not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_not_touched(train: Train, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="is a file: choose another folder"):
        train(out="file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(UserError, match="already holds other files"):
        train(out="full")
    assert [each.name for each in (tmp_path / "full").iterdir()] == ["mine"]


def test_a_run_at_work_and_a_run_with_other_settings_are_left_alone(train: Train, tmp_path: Path) -> None:
    train()
    saved = (tmp_path / "out" / "run" / "config.json").read_bytes()
    with filelock.FileLock(tmp_path / "out" / "run" / "lock"), pytest.raises(UserError, match="another run is at work"):
        train()
    with pytest.raises(UserError, match=r"settings.training.seed was None and is now 7"):
        train(training={"seed": 7})
    with pytest.raises(UserError, match=r"training.limit.steps was 3 and is now 5. Add --extend"):
        train(training={"limit": {"steps": 5}})
    assert (tmp_path / "out" / "run" / "config.json").read_bytes() == saved
    longer = Events()
    assert train(longer, training={"limit": {"steps": 5}}, extend=True).finished and longer.names.count("step") == 2


def test_a_limit_that_means_the_same_end_continues_the_run(train: Train) -> None:
    assert not train(Events(signal_at=2)).finished
    again = Events()
    assert train(again, training={"limit": {"steps": 3, "patience": 7}}).finished and again.resumed_at == 2
    assert train(training={"limit": {"steps": 3, "patience": 11}}).finished


def test_a_saved_run_that_is_damaged_is_named(train: Train, tmp_path: Path) -> None:
    train()
    file = tmp_path / "out" / "run" / "config.json"
    content = json.loads(file.read_text())
    del content["saved"]["data_key"]
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"config.json is damaged, or of another version of heedful"):
        train()
    file.write_text("{")
    with pytest.raises(UserError, match=r"config.json is damaged.*remove it to have the choices made again"):
        train()
    file.unlink()
    assert train().finished


@pytest.fixture(autouse=True)
def _threads_as_before() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
