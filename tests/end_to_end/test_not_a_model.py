"""What is not a model folder is said in one line by every verb that takes one."""

import json
from pathlib import Path

import pytest

VERBS = ["info", "translate", "generate", "fill", "classify", "tag", "embed", "score", "evaluate", "inspect"]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """What testers named in place of a model folder."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("red dog\n")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (foreign / "model.safetensors").write_bytes(b"")
    half = tmp_path / "half"
    half.mkdir()
    (half / "config.json").write_text("{}")
    names = {name: tmp_path / name for name in ("empty", "file", "foreign", "half", "nothing")}
    return {**names, "root": Path(tmp_path.anchor)}


MESSAGES = {
    "root": "is not a model folder: it holds neither config.json nor model.safetensors",
    "empty": "is not a model folder: it holds neither config.json nor model.safetensors",
    "file": "is a file: name the folder that holds a model's config.json and model.safetensors",
    "foreign": "holds a model in Hugging Face's layout: make it one of heedful's with heedful import",
    "half": "is not a complete model folder: model.safetensors is missing",
    "nothing": "there is no model folder",
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_one_line(run, places: dict[str, Path], kind: str) -> None:
    for verb in VERBS if kind in ("root", "file") else ["info", "translate"]:
        more = ["red [MASK]"] if verb not in ("info", "evaluate") else []
        told = run(verb, places[kind], *more, code=2).stderr.decode()
        assert told.startswith("heedful: ") and told.count("\n") == 1
        assert MESSAGES[kind] in told and str(places[kind]) in told
