"""What was reported as saved is found again, wherever the writing stopped and whatever happened to the files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import small_trainer
from heedful.errors import UserError
from heedful.files import save_tensors
from heedful.training.stored_tensors import load_group, stored_tensors
from small_trainer import found_step, save_step
from small_trainer import small_trainer as make_trainer


def ends(*arguments: str | Path) -> list[dict]:
    """What the program `small_trainer` tells."""
    command = [sys.executable, small_trainer.__file__, *map(str, arguments)]
    result = subprocess.run(command, check=True, capture_output=True, timeout=120)
    return [json.loads(line) for line in result.stdout.splitlines()]


posix = pytest.mark.skipif(os.name == "nt", reason="Windows does not fork, and has no SIGKILL")


@pytest.mark.slow
@posix
def test_ended_at_any_operation_the_next_start_finds_what_was_reported(tmp_path: Path) -> None:
    found = ends("at-each", tmp_path, "3")
    assert len(found) > 20
    assert found[-1]["reported"] == [1, 2, 3, 3]
    assert {len(end["reported"]) for end in found} == {0, 1, 2, 3, 4}
    for end in found:
        assert isinstance(end["found"], int), end
        assert end["found"] >= max(end["reported"], default=0), end
    assert all(name.startswith("step-") for end in found for name in end["names"]), "pieces are left"


@pytest.mark.slow
@posix
@pytest.mark.parametrize("how", ["killed", "killed-meanwhile"])
def test_killed_at_any_moment_the_next_start_finds_what_was_reported(tmp_path: Path, how: str) -> None:
    moments = [0.0017 * moment for moment in range(25)]
    found = ends(how, tmp_path, *map(str, moments))
    assert len(found) == len(moments)
    for end in found:
        assert isinstance(end["found"], int), end
        assert end["found"] >= end["reported"][-1], end
    assert all(name.startswith("step-") for end in found for name in end["names"]), "pieces are left"


def two_steps(folder: Path) -> None:
    trainer = make_trainer(folder)
    for step in (1, 2):
        save_step(trainer, step)


STATES = {
    "another step": {"position": {"step": 1, "epoch": 0, "batch": 0}},
    "a negative step": {"position": {"step": -5, "epoch": 0, "batch": 0}},
    "a huge step": {"position": {"step": 1e99, "epoch": 0, "batch": 0}},
    "a huge integer": {"position": {"step": 2, "epoch": 10**40, "batch": 0}},
    "a list": {"position": [2]},
    "a text": {"position": "2"},
    "nothing": {"position": None},
    "no epoch": {"position": {"step": 2, "batch": 0}},
    "no batch": {"position": {"step": 2, "epoch": 0}},
    "no step": {"position": {"epoch": 0, "batch": 0}},
    "steps of another type": {"validation_steps": "many"},
    "steps that are no integers": {"validation_steps": [1.5]},
    "time of another type": {"elapsed": "long"},
    "negative time": {"reserve": -1.0},
    "endless time": {"began": float("inf")},
    "no parts": {"split": 0},
    "true parts": {"split": True},
    "an end of another type": {"finished": "no"},
    "a rank of another type": {"best_rank": {"a": 1}},
    "a rank of texts": {"best_rank": ["low"]},
    "a rank of nothing": {"best_rank": []},
    "metrics of another type": {"metrics": [1, 2]},
    "metrics without their fields": {"metrics": {}},
    "metrics without a checksum": {"metrics": {"bytes": 84, "blake2b": 7}},
    "progress of another type": {"progress": "x"},
    "more progress than all": {"progress": 1.5},
    "negative progress": {"extended_at": -0.25},
    "an endless share": {"extended_at": float("nan")},
    "progress at no time": {"progress_at": None},
    "scores of another type": {"unsaved_scores": [2.5]},
    "scores that are no numbers": {"unsaved_scores": {"loss": "low"}},
}


@pytest.mark.parametrize("what", STATES)
def test_a_state_that_makes_no_sense_gives_way_to_the_one_before(what: str, tmp_path: Path) -> None:
    two_steps(tmp_path)
    newest = tmp_path / "checkpoints" / "step-000000002"
    (newest / "checksums.json").unlink(missing_ok=True)  # as an earlier version wrote it
    state = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps({**state, **STATES[what]}))
    trainer = make_trainer(tmp_path)
    assert trainer.resume()
    assert trainer.state.position.step == 1
    assert bool((trainer.model.bias == 1).all())
    assert len(trainer.observer.messages) == 1


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "average.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "a folder"])
def test_a_damaged_file_gives_way_to_the_checkpoint_before(file: str, damage: str, tmp_path: Path) -> None:
    two_steps(tmp_path)
    place = tmp_path / "checkpoints" / "step-000000002" / file
    content = bytearray(place.read_bytes())
    place.unlink()
    if damage == "flipped":
        content[-3] ^= 0x11
        place.write_bytes(content)
    elif damage == "a folder":
        place.mkdir()
    elif damage != "missing":
        place.write_bytes(content[: len(content) // 2 if damage == "cut" else 0])
    trainer = make_trainer(tmp_path)
    assert trainer.resume()
    assert trainer.state.position.step == 1
    [message] = trainer.observer.messages
    assert "step-000000002 is damaged" in message and "continuing from step-000000001" in message
    save_step(trainer, 2)
    assert found_step(tmp_path) == 2


@pytest.mark.parametrize("key", ["step", "exp_avg", "exp_avg_sq"])
@pytest.mark.parametrize("damage", ["missing", "of another shape"])
def test_an_optimizer_without_a_whole_moment_gives_way_to_the_checkpoint_before(
    key: str, damage: str, tmp_path: Path
) -> None:
    two_steps(tmp_path)
    newest = tmp_path / "checkpoints" / "step-000000002"
    (newest / "checksums.json").unlink()  # as an earlier version wrote it
    tensors = load_group(newest, "optimizer", stored_tensors(newest))
    found = tensors.pop(f"weight/{key}").clone()
    if damage != "missing":
        tensors[f"weight/{key}"] = torch.zeros((2, 3) if found.dim() == 0 else ())
    save_tensors(newest / "optimizer.safetensors", {name: each.clone() for name, each in tensors.items()})
    trainer = make_trainer(tmp_path)
    assert trainer.resume()
    assert trainer.state.position.step == 1
    assert all(state.keys() == {"step", "exp_avg", "exp_avg_sq"} for state in trainer.learner.optimizer.state.values())


def test_damaged_later_checkpoints_do_not_outlive_whole_ones(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    for step in (1, 5, 6):
        save_step(trainer, step)
    for step in (5, 6):
        (tmp_path / "checkpoints" / f"step-00000000{step}" / "state.json").write_text("")
    with pytest.raises(UserError, match="damaged"):
        make_trainer(tmp_path).resume()
    save_step(trainer, 7)
    for step in (2, 3):
        trainer = make_trainer(tmp_path)
        trainer.state.position.step = step
        save_step(trainer, step)
    kept = sorted(each.name for each in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-000000002", "step-000000003"]


def test_a_checkpoint_that_an_earlier_version_was_replacing_is_found(tmp_path: Path) -> None:
    two_steps(tmp_path)
    checkpoints = tmp_path / "checkpoints"
    (checkpoints / "step-000000002").rename(checkpoints / "writing-replaced")
    assert found_step(tmp_path) == 2
