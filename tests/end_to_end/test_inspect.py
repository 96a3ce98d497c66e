"""`heedful inspect` as users run it."""

import json
from pathlib import Path

import pytest

import heedful
from heedful.cli.main import main


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
        ([copy_model, "dog", "--training"], "--training looks at a run"),
        ([copy_model, "dog", "--out", tmp_path / "no" / "a.html"], "cannot write"),
        ([tmp_path / "nothing", "dog"], "there is no model folder"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["inspect", *map(str, arguments)])
        assert message in capsys.readouterr().err
