"""What `heedful evaluate` measures of text files: the documents that training would read."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.tasks.language_modeling.evaluation import evaluate
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.language_modeling.unknown_tokens import UnknownPromptWarning, UnknownTokensWarning
from heedful.tasks.loading import load
from heedful.text.tokenizer import Tokenizer
from tests.small_folders import STACK


def options(*files: Path) -> dict[str, Any]:
    given = {"text": tuple(map(str, files)), "document": "file", "encoding": None}
    return {**given, "device": "cpu", "engine": "torch", "precision": "fp32"}


def figures(model: Path, *files: Path) -> dict:
    return evaluate(str(model), options(*files), lambda _: None)[0]


def test_files_are_read_as_for_training(small_folders: dict[str, Path], tmp_path: Path) -> None:
    contents = {"a": b"red dog\n", "b": b"\n \n", "c": b"dog\x07red\r\n", "d": b"dog red\n"}
    files = {name: tmp_path / name for name in contents}
    for name, file in files.items():
        file.write_bytes(contents[name])
    model = small_folders["language_model"]
    assert figures(model, files["a"], files["b"], files["c"]) == figures(model, files["a"], files["d"])


def model_of_characters(folder: Path) -> Path:
    tokenizer = Tokenizer.of_characters(["red dog"])
    special = tokenizer.special_tokens
    config = DecoderOnlyConfig(tokenizer.vocabulary_size, 24, 29, stack=STACK, special_tokens=special)
    network = FAMILIES["decoder_only"].build(config)
    save_model_folder(folder, network, tokenizer, ModelConfig("decoder_only", "language_model", config), "card")
    return folder


def test_characters_that_the_model_does_not_know_are_told_of(tmp_path: Path) -> None:
    model, file = model_of_characters(tmp_path / "model"), tmp_path / "text"
    told: list[str] = []
    for text in ("好好red", "red dog"):
        file.write_text(text, encoding="utf-8")
        evaluate(str(model), options(file), told.append)
    (one,) = told
    assert one.startswith("the text has 2 of 5 characters (40.0%) that the model does not know: ")
    pipeline = load(model, "cpu")
    assert isinstance(pipeline, LanguageModel)
    with pytest.warns(UnknownTokensWarning, match="text 1 has 4 of 7 characters"):
        pipeline.score(["好好red", "你们"])
    with pytest.warns(UnknownPromptWarning, match=r"prompt 2 has 1 of 4 characters \(25\.0%\) that the model does not"):
        pipeline.generate(["red", "好red"], GenerationOptions(max_tokens=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownTokensWarning)
        pipeline.score("red dog")
        pipeline.generate("red", GenerationOptions(max_tokens=2))
