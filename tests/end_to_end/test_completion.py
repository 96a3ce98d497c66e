"""What a shell completes, as the README tells how to switch it on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def ask(**variables: str) -> tuple[str, str]:
    """The answer to a shell, and what was imported for it."""
    command = [sys.executable, "-X", "importtime", "-m", "heedful"]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, timeout=60)
    return result.stdout, result.stderr


def completed(words: str) -> list[str]:
    place = str(len(words.split(" ")) - 1)
    answer, imported = ask(_HEEDFUL_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    modules = {line.rpartition("|")[2].strip() for line in imported.splitlines()}
    assert "heedful.cli.main" in modules and modules.isdisjoint({"torch", "numpy"})
    return answer.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_readme_says_how_to_switch_it_on(shell: str) -> None:
    assert f"_HEEDFUL_COMPLETE={shell}_source heedful" in README
    script, _ = ask(_HEEDFUL_COMPLETE=f"{shell}_source")
    assert f"_HEEDFUL_COMPLETE={shell}_complete" in script


def test_commands_options_and_choices() -> None:
    assert completed("heedful tr") == ["plain,train", "plain,translate"]
    assert completed("heedful train lang") == ["plain,language-model"]
    assert completed("heedful translate m --prec") == ["plain,--precision"]
    assert completed("heedful translate m --precision i") == ["plain,int8"]


def test_names_of_files_and_folders_are_left_to_the_shell() -> None:
    assert completed("heedful translate en") == ["dir,en"]
    assert completed("heedful translate m --input a") == ["file,a"]
    assert completed("heedful train translation --source a") == ["file,a"]
    assert completed("heedful train translation --out a") == ["dir,a"]
    assert completed("heedful classify m a") == ["file,a"]
