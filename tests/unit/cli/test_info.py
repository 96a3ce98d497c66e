"""What `heedful info` says of the labels of a classifier, and of the texts that it reads."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from heedful.cli.info import info
from heedful.model_folder import save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.embedding import EmbeddingConfig
from tests.small_folders import small_models


def shown(folder: Path) -> str:
    return CliRunner().invoke(info, [str(folder)], catch_exceptions=False).output


@pytest.mark.parametrize(
    ("segments", "pairs_only", "expected"),
    [(0, False, "single texts "), (2, False, "single texts, or pairs "), (2, True, "pairs of texts ")],
)
def test_pairs_are_said_to_be_read(tmp_path: Path, segments: int, pairs_only: bool, expected: str) -> None:
    _, tokenizer, config = small_models()["classification"]
    settings = replace(config.model, embedding=EmbeddingConfig(segments=segments))
    config = replace(config, model=settings, pairs_only=pairs_only)
    save_model_folder(tmp_path / "model", EncoderOnly(settings), tokenizer, config, "card")
    (line,) = (line for line in shown(tmp_path / "model").splitlines() if "│ reads" in line)
    assert expected in line


def test_a_label_with_a_comma_is_one_label(tmp_path: Path) -> None:
    model, tokenizer, config = small_models()["classification"]
    save_model_folder(tmp_path / "model", model, tokenizer, replace(config, labels=("good", "so, so", "bad")), "card")
    assert "3: good, 'so, so', bad " in shown(tmp_path / "model")


def test_other_tasks_do_not_say_so(small_folders: dict[str, Path]) -> None:
    assert not any("│ reads" in shown(small_folders[task]) for task in ("tagging", "translation"))
