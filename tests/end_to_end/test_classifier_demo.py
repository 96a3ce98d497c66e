"""The classifier demo, cut short: it must run to its end and show all its parts."""

from pathlib import Path

import pytest
from rich.console import Console

from heedful.tasks.labelling import demo as classifier
from heedful.training.display import RunDisplay


def test_the_demo_shows_all_its_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "PHRASES", 400)
    monkeypatch.setattr(classifier, "UNSEEN", 60)
    phrases = classifier.labelled_phrases(1)
    assert len(phrases) == len({text for text, _ in phrases}) and len({code for _, code in phrases}) == 8
    result = classifier.run_demo(tmp_path / "demo", "3s", 1, RunDisplay(Console(stderr=True)))
    classifier.show(Console(), result, "demo")
    text = capsys.readouterr().out
    assert "phrases that were not in the training data" in text
    assert "of 60 unseen phrases" in text
    assert "taken for" in text and "next:" in text
