"""`heedful inspect` as users run it."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import heedful
from heedful.cli.main import main
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.text.tokenizer import Tokenizer


def test_a_page_and_the_data_behind_it(run, copy_model: Path, tmp_path: Path, capsys) -> None:
    page = tmp_path / "attention.html"
    result = run("inspect", copy_model, "red dog", "--out", page)
    assert result.stdout == b"" and str(page) in result.stderr.decode()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "Attention of model" in text
    with pytest.raises(SystemExit, match="0"):
        main(["inspect", str(copy_model), "red dog", "--json"])
    data = json.loads(capsys.readouterr().out)
    maps = heedful.load(copy_model).attention("red dog")
    assert data == maps.to_json()
    assert {each["kind"] for each in data["maps"]} == {"encoder", "decoder", "cross"}
    assert "".join(data["sequences"]["target"]) == " red dog⟨end⟩"
    with pytest.raises(SystemExit, match="0"):
        main(["inspect", str(copy_model), "red dog", "--target", "blue", "--json", "--out", str(tmp_path / "a.json")])
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "a.json").read_text())["sequences"]["target"] == [" blue", "⟨end⟩"]


def test_mistakes(copy_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([copy_model], "no text to look at"),
        ([copy_model, " "], "the text is blank"),
        ([copy_model, "--image", "cat.png"], "holds no image classifier"),
        ([copy_model, "dog", "--image", "cat.png"], "--image takes no text and no --target"),
        ([copy_model, "dog", "--resolution", "40"], "--resolution is the size of an image: give --image FILE too"),
        ([copy_model, "dog", "--training"], "--training looks at a run"),
        ([copy_model, "dog", "--out", tmp_path], "is the name of a folder: name a file"),
        ([copy_model, "dog", "--out", tmp_path / "no" / "a.html"], "cannot write"),
        ([tmp_path / "nothing", "dog"], "there is no model folder"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["inspect", *map(str, arguments)])
        assert message in capsys.readouterr().err
    assert not list(tmp_path.parent.glob("writing-*")), "half a page is left"


def test_a_device_is_written_to_and_not_replaced(copy_model: Path, tmp_path: Path, capsys) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(pipe.read_text)
        with pytest.raises(SystemExit, match="0"):
            main(["inspect", str(copy_model), "red dog", "--json", "--out", str(pipe)])
        assert json.loads(reading.result()) == heedful.load(copy_model).attention("red dog").to_json()
    assert pipe.is_fifo()


def save_classifier(folder: Path, scale: float = 1.0) -> None:
    tokenizer = Tokenizer.train(["red dog"] * 3, 270)
    config = EncoderOnlyConfig(
        tokenizer.vocabulary_size, 16, 11, "sinusoidal", EmbeddingConfig(segments=2), head="classes", num_labels=2,
        special_tokens=tokenizer.special_tokens,
    )  # fmt: skip
    settings = ModelConfig("encoder_only", "classification", config, labels=("yes", "no"))
    model = EncoderOnly(config)
    for parameter in model.parameters():
        parameter.data *= scale
    save_model_folder(folder, model, tokenizer, settings, "card")


def test_a_text_that_is_not_read_to_its_end_is_told_in_a_line(tmp_path: Path, capsys) -> None:
    save_classifier(tmp_path / "model")
    with pytest.raises(SystemExit, match="0"):
        main(["inspect", str(tmp_path / "model"), "red dog " * 9, "--out", str(tmp_path / "page.html")])
    first, second = capsys.readouterr().err.splitlines()
    assert first == "heedful: the text is longer than the 11 tokens that the model takes: its middle was not read"
    assert second == f"written to {tmp_path / 'page.html'}"


def test_weights_that_are_not_numbers_are_told(tmp_path: Path, capsys) -> None:
    save_classifier(tmp_path / "model", float("nan"))
    for as_json in ([], ["--json"]):
        with pytest.raises(SystemExit, match="2"):
            main(["inspect", str(tmp_path / "model"), "red dog", *as_json])
        assert "holds a number that is infinite or NaN: the weights are damaged" in capsys.readouterr().err
    for engine in ("torch", "core"):
        with pytest.raises(UserError, match="holds a number that is infinite or NaN: the weights are damaged"):
            heedful.load(tmp_path / "model", engine=engine)


def test_attention_that_is_not_a_number_is_told(tmp_path: Path, capsys) -> None:
    """Weights that are numbers, and yet give something that is none."""
    save_classifier(tmp_path / "model", 3e38)
    for as_json in ([], ["--json"]):
        with pytest.raises(SystemExit, match="2"):
            main(["inspect", str(tmp_path / "model"), "red dog", *as_json])
        assert "the model's attention weights are not numbers (NaN)" in capsys.readouterr().err
    for engine in ("torch", "core"):
        with pytest.raises(UserError, match="are not numbers"):
            heedful.load(tmp_path / "model", engine=engine).classify("red dog")
