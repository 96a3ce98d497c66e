"""Models whose positions are biases on the scores, from the command line: trained, longer, looked into."""

import json
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.cli.main import main
from heedful.settings.positions import traits_of
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.tasks.translation.answers import LongTextWarning

SMALL = ["--set=training.batches.tokens_per_step=256", "--set=model.width=16", "--steps=3"]
HEADS = "attention={num_heads=2, num_key_value_heads=2}"
STACK = f"{{num_layers=1, {HEADS}, feed_forward={{inner_width=16}}}}"
BUCKETS = '{scheme="relative_buckets", num_buckets=8, max_distance=19}'


def call(*arguments: object) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([str(each) for each in arguments])


def looked_into(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    capsys.readouterr()
    call("inspect", folder, text, "--json")
    return json.loads(capsys.readouterr().out)["maps"]


@pytest.mark.parametrize("positions", ["alibi", BUCKETS])
def test_a_language_model(positions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "model"
    text.write_text("".join(f"{n} {n + 1} {n + 2}\n" for n in range(300)))
    options = [*SMALL, f"--set=model.stack={STACK}", "--set=model.max_length=16", f"--set=model.positions={positions}"]
    call("train", "language-model", "--text", text, "--tokenizer", "characters", *options, "--out", out)
    model = heedful.load(out)
    assert traits_of(model.config.model.positions).extends
    # Three times the length of the training.
    assert model.generate("1 2 ", GenerationOptions(max_tokens=48, temperature=0.0)) != [""]
    (weights,) = [np.array(each["weights"]) for each in looked_into(out, "1 2 3", capsys)]
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)


@pytest.mark.parametrize("positions", ["alibi", BUCKETS])
def test_a_translation_model(positions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("".join(f"red dog {n}\n" for n in range(300)))
    files = ["--source", tmp_path / "train.en", "--target", tmp_path / "train.de"]
    options = [
        *SMALL,
        f"--set=model.encoder={STACK}",
        f"--set=model.decoder={STACK}",
        f"--set=model.positions={positions}",
    ]
    call("train", "translation", *files, *options, "--set=model.max_length=16", "--out", tmp_path / "model")
    model = heedful.load(tmp_path / "model", max_length=64)
    with pytest.warns(LongTextWarning):
        assert len(model.translate("red dog " * 20).tokens) > 16
    maps = looked_into(tmp_path / "model", "red dog", capsys)
    assert {each["kind"] for each in maps} == {"encoder", "decoder", "cross"}
