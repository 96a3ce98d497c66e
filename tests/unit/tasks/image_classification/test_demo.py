from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from heedful.errors import UserError
from heedful.tasks.image_classification import demo as demo_vision
from heedful.training.display import RunDisplay


def test_the_demo_trains_and_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_vision, "TRAINING_IMAGES", 200)
    monkeypatch.setattr(demo_vision, "UNSEEN_IMAGES", 23)
    display = RunDisplay(Console(file=StringIO()))
    for _ in range(2):  # the second one removes what the first one left
        result = demo_vision.run_demo(tmp_path / "demo", "0.5s", 1, display)
    assert len(result.examples) == 23
    right = sum(each.result.label == each.shape for each in result.examples)
    assert result.accuracy == right / 23
    text = StringIO()
    demo_vision.show(Console(file=text, width=120), result, "demo")
    assert f"right: {result.accuracy:.1%} of 23 unseen images" in text.getvalue()
    assert "heedful classify demo" in text.getvalue()
    assert f"open {result.page}" in text.getvalue().replace("\n", "")
    assert "data:image/png" in result.page.read_text()
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="not of an earlier demo"):
        demo_vision.run_demo(tmp_path / "other", "1s", 1, display)
