"""Labels of a test set that the model does not know: examples with them are wrong, and that is said."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from heedful.cli.evaluate import evaluate
from heedful.errors import UserError
from tests.small_folders import write_folders


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    return write_folders(tmp_path_factory.mktemp("folders"))


def measured(folder: Path, *options: str | Path):
    def run(*more: str):
        return CliRunner().invoke(evaluate, [str(folder), *map(str, options), *more], catch_exceptions=False)

    return json.loads(run("--json").stdout), run()


def test_texts_with_unknown_labels_are_wrong(folders, tmp_path):
    lines = ["yes\tred dog", "noo\tdog", "no\tred", "noo\tred red", "maybe\tdog dog"]
    (tmp_path / "test.tsv").write_text("".join(f"{line}\n" for line in lines))
    figures, shown = measured(folders["classification"], "--data", tmp_path / "test.tsv")
    assert shown.exit_code == 0 and figures["count"] == 5 and figures["accuracy"] <= 2 / 5
    place = f"{tmp_path / 'test.tsv'}, line"
    assert figures["unknown"] == [
        {"label": "noo", "count": 2, "first": f"{place} 2"},
        {"label": "maybe", "count": 1, "first": f"{place} 5"},
    ]
    assert figures["labels"] == ["no", "yes", "perhaps", "noo", "maybe"]
    assert sum(map(sum, figures["confusion"])) == 5
    expected = (
        f"3 of 5 labels are unknown to the model and count as wrong, the first in {place} 2: 'noo' (2), 'maybe' (1)"
    )
    assert expected in shown.stderr
    assert "labels unknown to the model, counted as wrong: 3" in shown.stdout


def test_words_with_unknown_tags_are_wrong(folders, tmp_path):
    (tmp_path / "test.txt").write_text("dog yes\nred no\n\nred no\n# comment, of words\ndog other\n")
    figures, shown = measured(folders["tagging"], "--data", tmp_path / "test.txt")
    assert figures["count"] == 4 and figures["accuracy"] <= 3 / 4
    # The line of the tag, not that of its sentence.
    assert figures["unknown"] == [{"label": "other", "count": 1, "first": f"{tmp_path / 'test.txt'}, line 6"}]
    assert "1 of 4 labels are unknown to the model" in shown.stderr and "line 6: 'other' (1)" in shown.stderr


def test_images_of_unknown_classes_are_wrong(folders, tmp_path):
    for name in ("yes", "zebra"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "a.png")
    figures, shown = measured(folders["image_classifier"], "--images", tmp_path)
    assert figures["count"] == 2 and figures["accuracy"] <= 1 / 2
    assert [each["label"] for each in figures["unknown"]] == ["zebra"]
    assert "a.png: 'zebra' (1)" in shown.stderr


def test_a_test_set_of_something_else_is_refused(folders, tmp_path):
    (tmp_path / "test.tsv").write_text("good\tred dog\nbad\tdog\n")
    with pytest.raises(UserError, match=r"none of the labels .*'good' \(.*line 1\): expected 'no', 'yes', 'perhaps'"):
        measured(folders["classification"], "--data", tmp_path / "test.tsv")
