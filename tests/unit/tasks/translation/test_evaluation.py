"""What `heedful evaluate` says about the pairs of a test set: each is known by its file and the line it begins on."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from heedful.cli.evaluate import evaluate
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.text.tokenizer import Tokenizer

LONG = " ".join(["red dog"] * 17)  # more subwords than the model takes


def said(*arguments: str | Path) -> str:
    options = ["--engine", "torch", "--workers", "1", "--beam", "1"]
    return CliRunner().invoke(evaluate, [*map(str, arguments), *options], catch_exceptions=False).stderr


@pytest.mark.parametrize(
    ("name", "content", "layout", "blank", "long"),
    [
        ("a.tsv", f"red\tdog\ndog\t \n{LONG}\tred\n", "", 2, 3),
        ("a.tsv", f"source\ttarget\nred\tdog\n\ndog\t \n{LONG}\tred\n", "tabs, with a header: source is", 4, 5),
        (
            "a.csv",
            f'target,id,source\n"red\ndog\nred",1,dog\n ,2,red\n,,\nred,3,{LONG}\n',
            "commas, with a header: source is column 3, target is column 1",
            5,
            7,
        ),
        ("a.jsonl", f'{{"source": "dog", "target": ""}}\n\n{{"source": "{LONG}", "target": "red"}}\n', "JSON", 1, 3),
    ],
)
def test_remarks_name_the_line_of_the_file(
    untrained_model: Path, tmp_path: Path, name: str, content: str, layout: str, blank: int, long: int
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    told = said(untrained_model, "--tsv", tmp_path / name)
    assert f"line {blank} of {tmp_path / name} has a blank reference" in told
    assert f"line {long} of {tmp_path / name} has " in told and told.count("subwords without a sentence end") == 1
    assert ("is read as" in told) == bool(layout) and layout in told


def test_a_pair_too_long_for_the_model_is_named_by_its_place(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["red dog"], 263)
    settings = EncoderDecoderConfig(tokenizer.vocabulary_size, 24, 29, positions="learned")
    config = ModelConfig("encoder_decoder", "translation", settings)
    save_model_folder(tmp_path / "model", EncoderDecoder(settings), tokenizer, config, "card")
    (tmp_path / "a.tsv").write_text(f"red\tdog\n \tred\n\ndog\t{LONG}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"^line 4 of \S*a.tsv has a target of more than 29 subwords"):
        said(tmp_path / "model", "--tsv", tmp_path / "a.tsv")
    (tmp_path / "a.en").write_text("\n\nred\n")
    (tmp_path / "a.de").write_text(f"\n\n{LONG}\n")
    with pytest.raises(UserError, match=r"^line 3 of \S*a.en has a target of more than 29 subwords"):
        said(tmp_path / "model", "--source", tmp_path / "a.en", "--reference", tmp_path / "a.de")


def test_remarks_on_two_files_name_the_line_of_the_source(untrained_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("red\n\ndog\n")
    (tmp_path / "a.de").write_text("dog\n\n\n")
    told = said(untrained_model, "--source", tmp_path / "a.en", "--reference", tmp_path / "a.de")
    assert f"line 3 of {tmp_path / 'a.en'} has a blank reference" in told
