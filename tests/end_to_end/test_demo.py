"""The demo, cut short: it must run to its end and show all its parts."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_the_demo_shows_all_its_parts_and_runs_again(run, tmp_path: Path) -> None:
    for _ in range(2):
        result = run("demo", "--to", "fr", "--out", tmp_path / "demo", "--budget", "12s")
        text = result.stdout.decode()
        assert "phrases that were not in the training data" in text
        assert "exact matches" in text
        assert "what each output word attended to" in text
        assert "next:" in text
        assert str(tmp_path / "demo" / "attention.html") in text
        assert (tmp_path / "demo" / "attention.html").read_text().startswith("<!doctype html>")
    assert run("translate", tmp_path / "demo", stdin=b"March 3, 2031\n").stdout.count(b"\n") == 1


def test_a_folder_of_something_else_is_left_alone(run, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("data")
    result = run("demo", "--out", tmp_path, code=2)
    assert b"not of an earlier demo" in result.stderr
    assert (tmp_path / "precious.txt").read_text() == "data"


def test_an_unknown_language_names_near_ones(run) -> None:
    assert b"did you mean de" in run("demo", "--to", "german", code=2).stderr


def test_too_short_a_training_is_told_of(run, tmp_path: Path) -> None:
    told = run("demo", "classifier", "--out", tmp_path / "demo", "--budget", "1s").stderr.decode()
    assert "the model has not learned much: 1s of training is too short" in told and "--budget" in told
