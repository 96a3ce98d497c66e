"""Files in other encodings and layouts, by the commands: what is told, and what comes out."""

from collections.abc import Callable
from pathlib import Path

import pytest

SMALL = [
    "--set=model.width=16",
    "--set=training.batches={tokens_per_step=320, tokens_per_batch=160}",
    "--set=training.saving={validations=1}",
    "--set=training.machine={workers=1, threads=1}",
    "--steps=2",
]
STACK = "--set=model.stack={num_layers=1, attention={num_heads=2}, feed_forward={inner_width=16}}"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory, run: Callable) -> tuple[Path, str]:
    """A classifier of texts in Latin-1 as CSV, and what was said in its training."""
    folder = tmp_path_factory.mktemp("table")
    rows = ["text,label", *(f'"Bär, {n} Übungen",{"ab"[n % 2]}' for n in range(100))]
    (folder / "a.csv").write_text("\n".join(rows) + "\n", encoding="latin-1")
    command = ["train", "classifier", "--data", folder / "a.csv", "--out", folder / "model", *SMALL, STACK]
    text = run(*command, code=2).stderr.decode()
    assert text.splitlines()[-1].startswith("heedful: ")
    assert "100 of 101 lines are not valid UTF-8, and it looks like ISO-8859-1: give --encoding iso-8859-1" in text
    return folder, run(*command, "--encoding", "iso-8859-1").stderr.decode()


def test_a_table_in_latin_1_trains_as_it_is_told(classifier: tuple[Path, str]) -> None:
    _, text = classifier
    assert "a.csv is read as columns between commas, with a header: label is column 2, text is column 1" in text
    assert "warning: only 95 examples to train on" in text


def test_the_same_table_is_measured_on(classifier: tuple[Path, str], run: Callable) -> None:
    folder, _ = classifier
    given = ["evaluate", folder / "model", "--data", folder / "a.csv"]
    result = run(*given, "--encoding", "latin-1")
    assert b"of 100 labels" in result.stdout
    by_number = run(*given, "--encoding", "latin-1", "--columns", "2,1", "--header", "--delimiter", "comma")
    assert by_number.stdout == result.stdout
    assert b"looks like ISO-8859-1" in run(*given, code=2).stderr


def test_an_aligned_file_in_latin_1_is_not_trained_on(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("".join(f"exercise {n}\n" for n in range(100)))
    german = [f"{'Übung' if n % 3 else 'Bild'} {n}\n" for n in range(100)]
    (tmp_path / "a.de").write_text("".join(german), encoding="latin-1")
    files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de", "--out", tmp_path / "out"]
    text = run("train", "translation", *files, *SMALL, code=2).stderr.decode()
    assert "a.de: 66 of 100 lines are not valid UTF-8, and it looks like ISO-8859-1: give --encoding" in text


def test_translate_and_evaluate_read_other_encodings(run: Callable, untrained_model: Path, tmp_path: Path) -> None:
    lines = "Bär\nÜbung\n" * 3
    for name, encoding in (("utf8", "utf-8"), ("latin", "latin-1"), ("wide", "utf-16")):
        (tmp_path / name).write_text(lines, encoding=encoding)
    command = ["translate", untrained_model, "--max-length", "5"]
    usual = run(*command, "--input", tmp_path / "utf8").stdout
    assert usual.count(b"\n") == 6
    assert run(*command, "--input", tmp_path / "latin", "--encoding", "latin-1").stdout == usual
    assert run(*command, "--input", tmp_path / "wide").stdout == usual
    assert run(*command, "--encoding", "latin-1", stdin=lines.encode("latin-1")).stdout == usual
    scores = ["evaluate", untrained_model, "--beam", "1", "--reference", tmp_path / "latin", "--source"]
    assert b"BLEU" in run(*scores, tmp_path / "latin", "--encoding", "latin-1").stdout
    assert b"looks like ISO-8859-1" in run(*scores, tmp_path / "latin", code=2).stderr
