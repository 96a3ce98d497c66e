"""`heedful tag --json`: one object for each line, with the words that are tagged."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from heedful.cli.tag import tag
from heedful.tasks.labelling.tagger import Tagger
from heedful.tasks.loading import load


def test_json_has_words_with_tags_and_probabilities(small_folders: dict[str, Path], tmp_path: Path) -> None:
    lines, folder = ["red  dog", "", "größer"], str(small_folders["tagging"])
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = [folder, "--input", str(tmp_path / "in.txt")]
    plain = CliRunner().invoke(tag, arguments, catch_exceptions=False).stdout.splitlines()
    written = CliRunner().invoke(tag, [*arguments, "--json"], catch_exceptions=False).stdout
    assert "größer" in written
    found = [json.loads(line) for line in written.splitlines()]
    assert found[1] == {"words": []}
    assert [[word["word"] for word in each["words"]] for each in found] == [line.split() for line in lines]
    assert [" ".join(word["tag"] for word in each["words"]) for each in found] == plain
    pipeline = load(folder, "cpu")
    assert isinstance(pipeline, Tagger)
    expected = [word.probability for word in pipeline.tag("red dog")]
    assert [word["probability"] for word in found[0]["words"]] == pytest.approx(expected)
