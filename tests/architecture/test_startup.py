"""Nothing is imported that a command does not need: help answers at once, and a translation waits for torch alone."""

import json
import subprocess
import sys
from pathlib import Path

from heedful.cli.main import VERBS
from heedful.cli.train import train

HELP = [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)]
HELP += [["train", kind, "--help"] for kind in train.commands]

# Runs commands in one process, and tells for each which modules it has brought with it.
PROGRAM = """
import contextlib, io, json, sys
preloaded, commands = json.loads(sys.argv[1])
for name in preloaded:
    __import__(name)
before, found = set(sys.modules), []
from heedful.cli.main import cli
for arguments in commands:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        cli.main(arguments, standalone_mode=False)
    found.append(sorted(set(sys.modules) - before))
print(json.dumps(found))
"""


def imported(commands: list[list[str]], preloaded: tuple[str, ...] = ()) -> list[set[str]]:
    """The modules that are there after each of some commands, without the standard library and what was preloaded."""
    order = json.dumps([preloaded, commands])
    result = subprocess.run([sys.executable, "-c", PROGRAM, order], check=True, capture_output=True)
    return [{name for name in names if top(name) not in sys.stdlib_module_names} for names in json.loads(result.stdout)]


def top(name: str) -> str:
    return name.partition(".")[0]


def test_help_needs_nothing_but_click() -> None:
    found = imported(HELP)
    for arguments, names in zip(HELP, found, strict=True):
        assert {top(name) for name in names} == {"click", "heedful"}, arguments


def test_a_translation_waits_for_little_but_torch(untrained_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("red dog\n")
    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    (names,) = imported([["translate", str(untrained_model), "--max-length", "3", *files]], preloaded=("torch",))
    assert (tmp_path / "out").read_text().count("\n") == 1
    # Nothing for images, progress, scores or servers, and no part of torch that `import torch` goes without.
    assert {top(name) for name in names} <= {"click", "heedful", "numpy", "safetensors", "sentencex", "tokenizers"}
    parts = {name.split(".")[1] for name in names if name.startswith("heedful.")}
    assert parts.isdisjoint({"doctor", "interop", "presets", "server", "training"})
    # Of the other tasks, what they declare and nothing else.
    files = [name.split(".")[2:] for name in names if name.startswith("heedful.tasks.") and name.count(".") == 3]
    assert {task for task, file in files if file != "about"} == {"translation"}
    assert {file for task, file in files if task == "translation"}.isdisjoint(
        {"corpus", "data", "demo", "demo_corpus", "evaluation", "job", "pair_encoder", "pairs", "survey"}
    )
