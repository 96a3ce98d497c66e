"""`heedful inspect` as users run it."""

import json
from pathlib import Path

import heedful


def test_a_page_and_the_data_behind_it(run, copy_model: Path, tmp_path: Path) -> None:
    page = tmp_path / "attention.html"
    result = run("inspect", copy_model, "red dog", "--out", page)
    assert result.stdout == b"" and str(page) in result.stderr.decode()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "Attention of model" in text
    data = json.loads(run("inspect", copy_model, "red dog", "--json").stdout)
    maps = heedful.load(copy_model).attention("red dog")
    assert data == maps.to_json()
    assert {each["kind"] for each in data["maps"]} == {"encoder", "decoder", "cross"}
    assert "".join(data["sequences"]["target"]) == " red dog⟨end⟩"
    forced = run("inspect", copy_model, "red dog", "--target", "blue", "--json", "--out", tmp_path / "a.json")
    assert forced.stdout == b""
    assert json.loads((tmp_path / "a.json").read_text())["sequences"]["target"] == [" blue", "⟨end⟩"]


def test_mistakes(run, copy_model: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ([copy_model], "no text to look at"),
        ([copy_model, " "], "the text is blank"),
        ([copy_model, "--image", "cat.png"], "holds no image classifier"),
        ([copy_model, "dog", "--training"], "--training looks at a run"),
        ([copy_model, "dog", "--out", tmp_path / "no" / "a.html"], "cannot write"),
        ([tmp_path / "nothing", "dog"], "there is no model folder"),
    ):
        assert message in run("inspect", *arguments, code=2).stderr.decode()
