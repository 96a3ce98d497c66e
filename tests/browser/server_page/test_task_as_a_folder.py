"""A task that is added as one folder and one name in the registry is trained, measured, served and shown."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

import heedful
from server_page import Page
from server_process import serving

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "fixtures" / "reversing_task"
LINES = [" ".join(words) for words in permutations(["red", "green", "blue", "dog", "cat", "sun", "sea"], 3)]
STACK = "{num_layers=1, dropout=0.0, attention={num_heads=4}, feed_forward={inner_width=128}}"
SETTINGS = {
    "model.width": "64",
    "model.encoder": STACK,
    "model.decoder": STACK,
    "training.batches.tokens_per_step": "400",
    "training.saving.validations": "1",
    "training.schedule.learning_rate": "0.01",
    "training.label_smoothing": "0.0",
    "training.machine.workers": "1",
}
SMALL = [f"--set={name}={value}" for name, value in SETTINGS.items()]


class Tree:
    """A copy of the package that has the task, a text to learn from, and the command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.text = folder, folder / "model", folder / "lines.txt"
        package = folder / "heedful"
        shutil.copytree(Path(heedful.__file__).parent, package)
        shutil.copytree(FOLDER, package / "tasks" / "reversing")
        registry = package / "tasks" / "registry.py"
        before = registry.read_text(encoding="utf-8")
        registry.write_text(before.replace("FOLDERS = (\n", 'FOLDERS = (\n    "reversing",\n'), encoding="utf-8")
        self.text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}

    def run(self, *arguments: str | Path) -> str:
        """What a command of this tree writes, once it has succeeded."""
        command = [sys.executable, "-m", "heedful", *map(str, arguments)]
        result = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The tree with a model that was trained in it."""
    tree = Tree(tmp_path_factory.mktemp("tree"))
    tree.run("train", "reversing", "--text", tree.text, "--out", tree.model, "--steps", "150", *SMALL)
    return tree


@pytest.fixture(scope="module")
def reversing_address(tree: Tree) -> Iterator[str]:
    with serving([tree.model], tree.environment) as address:
        yield address


def test_it_is_trained_and_measured(tree: Tree) -> None:
    figures = json.loads(tree.run("evaluate", tree.model, "--text", tree.text, "--json"))
    assert figures["lines"] == len(LINES) == 210
    assert figures["accuracy"] > 0.8


def test_it_is_served(reversing_address: str) -> None:
    with urllib.request.urlopen(f"{reversing_address}/api/models") as answer:
        (model,) = json.load(answer)["models"]
    assert (model["task"], model["title"]) == ("reversing", "Reversing")
    assert (model["takes"], model["gives"], model["verbs"]) == ("text", "text", ["reverse", "attention"])
    with urllib.request.urlopen(f"{reversing_address}/openapi.json") as answer:
        route = json.load(answer)["paths"]["/api/reverse"]["post"]
    assert route["description"] == "Reverse lines of text."
    data = json.dumps({"text": LINES[:100]}).encode()
    request = urllib.request.Request(f"{reversing_address}/api/reverse", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)
    assert answer["remarks"] == []
    expected = [" ".join(reversed(line.split())) for line in LINES[:100]]
    found = [each["text"] for each in answer["results"]]
    assert sum(map(str.__eq__, found, expected)) > 80


def test_it_is_shown(browser, reversing_address: str) -> None:
    page = Page(browser, reversing_address)
    page.open()
    assert page.one("#facts").text.startswith("Reversing · encoder-decoder")
    assert page.one("textarea").get_attribute("placeholder") == "Type a line; its words appear in reverse order"
    page.type(LINES[17])
    assert page.one(".answer-text").text == page.api("/api/reverse", text=LINES[17])["results"][0]["text"]
    page.button("Attention").click()
    assert page.one(".matrix-body")
