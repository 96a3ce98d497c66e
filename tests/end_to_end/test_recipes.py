"""The recipes of the documentation, run by a shell one after the other, as their reader would; with few steps."""

import gzip
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image

from heedful.cli.main import cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are started by forking, from /proc")

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[tuple[str, str]]:
    """The code of that kind, each with the heading that it stands under."""
    return [
        (heading, code)
        for heading, section in SECTIONS
        for language, code in re.findall(r"^```(\S*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        if language == kind
    ]


RECIPES = blocks("sh")
COMMANDS = [line for _, code in blocks("") for line in code.splitlines() if line.startswith("heedful ")]

BATCHES = "--set=training.batches={tokens_per_step=320, tokens_per_batch=160}"
FEW_STEPS = ["--set=training.machine={workers=1, threads=1}", "--set=training.saving.validations=1"]
STACK = "{num_layers=1, attention={num_heads=2}, feed_forward={inner_width=16}}"
SMALL = ["--set=model.width=16", f"--set=model.stack={STACK}"]
SMALL_MODELS = {
    "translation": ["--set=model.width=16", f"--set=model.encoder={STACK}", f"--set=model.decoder={STACK}", BATCHES],
    "language-model": [*SMALL, "--set=model.max_length=24", BATCHES],
    "masked-language-model": [*SMALL, BATCHES],
    "classifier": [*SMALL, BATCHES],
    "tagger": [*SMALL, BATCHES],
    "image-classifier": SMALL,
}

# What the shell finds as `heedful`: it hands its arguments and open files to the process that forks, and waits.
CLIENT = """import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
files = [f"/proc/{{os.getpid()}}/fd/{{number}}" for number in range(3)]
connection.sendall((json.dumps([sys.argv[1:], files, os.getcwd()]) + "\\n").encode())
sys.exit(int(connection.makefile().readline()))
"""


RunOn = Callable[[list[str], list[str], str], int]


def shortened(arguments: list[str]) -> list[str]:
    """A command as it is run here: trainings are of few steps and tiny models."""
    if arguments[0] != "train":
        return arguments
    size = [] if "--from" in arguments else SMALL_MODELS[arguments[1]]
    limit = [] if "--epochs" in arguments else ["--steps", "2"]
    return [*arguments, *limit, *FEW_STEPS, *size]


def answer(listening: socket.socket, run_on: RunOn) -> None:
    """Run the commands that clients ask for, until the socket is closed."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, connection.makefile() as lines:
            arguments, files, folder = json.loads(lines.readline())
            code = run_on(shortened(arguments), files, folder)
            connection.sendall(f"{code}\n".encode())


def write_text_files(folder: Path, lines: list[str]) -> None:
    pairs = [(line, line.upper()) for line in lines]
    for name, count, encoding in (("train", 160, "utf-8"), ("test", 20, "utf-8"), ("latin", 160, "iso-8859-1")):
        accent = "é " if encoding != "utf-8" else ""
        for side, ending in enumerate(("en", "de")):
            text = "".join(f"{accent}{pair[side]}\n" for pair in pairs[:count])
            (folder / f"{name}.{ending}").write_text(text, encoding=encoding)
    (folder / "in.txt").write_text("red dog\n\nblue sea\n" * 3)
    (folder / "in.txt.gz").write_bytes(gzip.compress((folder / "in.txt").read_bytes()))
    (folder / "latin.txt").write_text("caf\u00e9\n", encoding="iso-8859-1")
    (folder / "paragraphs.txt").write_text("Red dog. Blue sea. Green tree. White moon.\n" * 2)
    for name in ("sentences.txt", "reviews.txt", "book.txt", "test.txt"):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    for number, part in enumerate((pairs[:80], pairs[80:])):
        for side, ending in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"part{number}.{ending}.gz").write_bytes(gzip.compress(text.encode()))


def write_tables(folder: Path, lines: list[str]) -> None:
    pairs = [(line, line.upper()) for line in lines]
    tsv = "".join(f"{a}\t{b}\n" for a, b in pairs)
    for name in ("pairs.tsv", "ours.tsv", "ours-test.tsv"):
        (folder / name).write_text(tsv)
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress(tsv.encode()))
    (folder / "scored.tsv").write_text("".join(f"0.{n}\t{a}\t{b}\n" for n, (a, b) in enumerate(pairs)))
    (folder / "train.en-de.csv").write_text("en,de\n" + "".join(f'"{a}, so",{b}\n' for a, b in pairs))
    objects = [{"id": n, "translation": {"en": a, "de": b}} for n, (a, b) in enumerate(pairs)]
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    labelled = [("good" if "red" in line else "bad", line) for line in lines]
    for name in ("train.tsv", "test.tsv", "few.tsv"):
        (folder / name).write_text("".join(f"{label}\t{line}\n" for label, line in labelled))
    stars = "".join(f"{n},{line},{label}\n" for n, (label, line) in enumerate(labelled))
    (folder / "reviews.csv").write_text("id,review,stars\n" + stars)
    objects = [{"label": label, "text": line} for label, line in labelled]
    (folder / "labelled.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    tagged = [[(word, "COLOUR" if word in ("red", "blue") else "O") for word in line.split()] for line in lines]
    conll = "\n".join("".join(f"{word} {tag}\n" for word, tag in sentence) for sentence in tagged)
    for name in ("train.conll", "test.conll"):
        (folder / name).write_text(conll)
    objects = [dict(zip(("words", "tags"), zip(*sentence, strict=True), strict=True)) for sentence in tagged]
    (folder / "tagged.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))


def write_images(folder: Path) -> None:
    draw = np.random.default_rng(5)
    for part, count in (("photos", 13), ("test-photos", 3)):
        for label, shade in (("cat", 40), ("dog", 200)):
            (folder / part / label).mkdir(parents=True)
            for number in range(count):
                pixels = draw.integers(shade - 30, shade + 30, (8, 8, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / part / label / f"{number}.png")
    for label in ("cat", "dog"):
        Image.open(folder / "test-photos" / label / "0.png").save(folder / f"{label}.png")


class Kitchen:
    """A folder with the files that the recipes begin with, and a shell that runs recipes there, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.done = folder, 0
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}

    def run_up_to(self, number: int) -> subprocess.CompletedProcess[str]:
        """Run a recipe, and those before it that have not been: it may use their models."""
        while self.done <= number:
            result = self.shell(RECIPES[self.done][1])
            self.done += 1
        return result

    def shell(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run lines of a shell, which must end well."""
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert result.returncode == 0, (code, result.stderr[-2000:])
        return result


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory, run_on: RunOn, make_sentences: Callable) -> Iterator[Kitchen]:
    folder = tmp_path_factory.mktemp("recipes")
    lines = make_sentences(160, seed=3)
    write_text_files(folder, lines)
    write_tables(folder, lines)
    write_images(folder)
    (folder / "bin").mkdir()
    address = str(tmp_path_factory.mktemp("s") / "heedful")
    (folder / "client.py").write_text(CLIENT.format(address=address))
    # Not named in the first line of the program: there, a path must not have spaces.
    command = shlex.join([sys.executable, "-SE", str(folder / "client.py")])
    (folder / "bin" / "heedful").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (folder / "bin" / "heedful").chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        thread = threading.Thread(target=answer, args=[listening, run_on], daemon=True)
        thread.start()
        yield Kitchen(folder)
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


IDS = [re.sub(r"\W+", "-", heading.lower()).strip("-") for heading, _ in RECIPES]


@pytest.mark.parametrize("number", range(len(RECIPES)), ids=IDS)
def test_a_recipe_works(kitchen: Kitchen, number: int) -> None:
    kitchen.run_up_to(number)
    code = RECIPES[number][1]
    for made in re.findall(r"(?:>|--out|--output) (\S+)", code):
        path = kitchen.folder / made
        assert (path / "model.safetensors").is_file() if path.is_dir() else path.stat().st_size, made
    for given, made in re.findall(r"(?:translate|tag|classify) .*< (\S+) > (\S+)", code):
        lines = (kitchen.folder / given).read_bytes().count(b"\n")
        count = int(re.search(r"--nbest (\d)", code)[1]) if "--nbest" in code else 1
        assert (kitchen.folder / made).read_bytes().count(b"\n") == lines * count


def test_every_way_of_serving_is_a_command() -> None:
    unit = re.findall(r"^ExecStart=\S*/(heedful .*)", TEXT, re.MULTILINE)
    container = [shlex.join(json.loads(line)) for line in re.findall(r"^CMD (.*)", TEXT, re.MULTILINE)]
    commands = [shlex.split(line)[1:] for line in COMMANDS + unit + container]
    assert len(commands) == 5
    for verb, *arguments in commands:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        command.make_context(verb, arguments)  # fails for what it does not know
