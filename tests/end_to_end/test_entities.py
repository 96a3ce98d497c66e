"""`heedful evaluate` of a tagger whose tags say where entities begin and end."""

import json
from pathlib import Path

import pytest
import torch

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.text.tokenizer import Tokenizer

SENTENCES = [("red dog in the sea", "B-A I-A O B-B I-B"), ("the sun", "O B-A"), ("blue", "I-B")]


@pytest.fixture(params=[("O", "B-A", "I-A", "B-B", "I-B"), ("O", "NOUN", "VERB")], ids=["entities", "words"])
def tagger(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """A tagger with random weights, which finds something, if not what it should."""
    torch.manual_seed(3)
    words = Tokenizer.train([text for text, _ in SENTENCES], 283, mask=True)
    encoder = EncoderOnlyConfig(
        words.vocabulary_size, 16, 61, stack=StackConfig(num_layers=1), head="tags", num_labels=len(request.param),
        special_tokens=words.special_tokens,
    )  # fmt: skip
    config = ModelConfig("encoder_only", "tagging", encoder, labels=request.param)
    save_model_folder(tmp_path / "model", EncoderOnly(encoder), words, config, "card")
    return tmp_path / "model", request.param


def test_entities_are_counted_where_there_are_any(run, tagger, tmp_path: Path) -> None:
    model, labels = tagger
    tags = [tags if "B-A" in labels else " ".join(["NOUN"] * len(text.split())) for text, tags in SENTENCES]
    pairs = [zip(text.split(), its.split(), strict=True) for (text, _), its in zip(SENTENCES, tags, strict=True)]
    blocks = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in pairs]
    (tmp_path / "test.conll").write_text("\n".join(blocks))
    command = ["evaluate", model, "--data", tmp_path / "test.conll"]
    figures = json.loads(run(*command, "--json").stdout)
    text = run(*command).stdout.decode()
    assert figures["count"] == 8 and "macro average" in text
    if "B-A" not in labels:
        assert figures["entities"] is None and "all entities" not in text
        return
    assert figures["entities"]["overall"]["count"] == 4
    assert {each["name"]: each["count"] for each in figures["entities"]["per_type"]} == {"A": 2, "B": 2}
    assert "all entities" in text
    # What it answers is the truth for itself.
    found = run("tag", model, *(text for text, _ in SENTENCES)).stdout.decode().splitlines()
    rows = [zip(text.split(), its.split(), strict=True) for (text, _), its in zip(SENTENCES, found, strict=True)]
    (tmp_path / "test.conll").write_text("\n".join("".join(f"{a}\t{b}\n" for a, b in row) for row in rows))
    figures = json.loads(run(*command, "--json").stdout)
    assert figures["entities"]["overall"]["f1"] == 1.0 and figures["accuracy"] == 1.0
