"""The Python code in the documentation runs."""

import re
from pathlib import Path

import pytest

from heedful.tasks.labelling.files import RULES as RULES_OF_LABELLED_TEXT
from heedful.text.cleaning import RULES

ROOT = Path(__file__).parents[2]
BLOCKS = [
    pytest.param(code, id=f"{file.name}-{number}")
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs(code: str, copy_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (tmp_path / "en-de").symlink_to(copy_model, target_is_directory=True)
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("red dog\nblue sea\ngreen tree\nwhite moon\n" * 3 + "one cat\n")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "documentation", "exec"), {})
    assert capsys.readouterr().out


def test_links_lead_somewhere() -> None:
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", file.read_text(encoding="utf-8")):
            assert target.startswith("http") or (file.parent / target).exists(), (file.name, target)


def test_the_rules_of_cleaning_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for rule, sentence in RULES.items():
        assert f"| {rule.value} | {sentence} |" in text


def test_the_rules_of_labelled_text_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
    for rule, sentence in RULES_OF_LABELLED_TEXT.items():
        assert f"| {rule} | {sentence} |" in text
