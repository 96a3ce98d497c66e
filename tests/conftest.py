"""What end-to-end and learning tests share: the command as users run it, and two models that it trained."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from hypothesis import settings

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.text.tokenizer import Tokenizer
from preloaded import PreloadedCommand
from small_folders import write_folders

# Tests run side by side: operations split over all cores would wait for each other.
torch.set_num_threads(1)
# The same examples in every run; a busy machine may take its time with them.
settings.register_profile("heedful", deadline=None, derandomize=True)
settings.load_profile("heedful")

WORDS = ["red", "green", "blue", "white", "black", "one", "two", "three", "four", "five", "six"]
WORDS += ["seven", "dog", "cat", "bird", "fish", "house", "tree", "sun", "moon", "sea"]
Run = Callable[..., subprocess.CompletedProcess[bytes]]


# Long files come first, so that none is left to run alone at the end.
FIRST = ("learning", "serving", "browser", "end_to_end")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((n for n, part in enumerate(FIRST) if part in item.path.parts), len(FIRST)))


@cache
def preloaded_command() -> PreloadedCommand:
    return PreloadedCommand()


def heedful(*arguments: str | Path, stdin: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own, and check its exit code."""
    if sys.platform == "linux":
        result = preloaded_command().run([*map(str, arguments)], stdin)
    else:
        command = [sys.executable, "-m", "heedful", *map(str, arguments)]
        result = subprocess.run(command, input=stdin, capture_output=True, timeout=300)
    assert result.returncode == code, (result.returncode, result.stderr.decode()[-2000:])
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    return result


@pytest.fixture(scope="session", autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    if preloaded_command.cache_info().currsize:
        preloaded_command().close()


@pytest.fixture(scope="session")
def run() -> Run:
    return heedful


@pytest.fixture(scope="session")
def run_on() -> Callable[[list[str], list[str], str], int]:
    """Run the command with given files for input, output and errors, in a folder: its exit code."""
    return partial(preloaded_command().run_on, ends_at_once=True)


def sentences(count: int, seed: int, longest: int = 9) -> list[str]:
    """Random sequences of words, from a seed."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


SMALL = [
    "--set=model.width=64",
    "--set=model.encoder={num_layers=2, dropout=0.0, attention={num_heads=4}, feed_forward={inner_width=256}}",
    "--set=model.decoder={num_layers=2, dropout=0.0, attention={num_heads=4}, feed_forward={inner_width=256}}",
    "--set=training.batches.tokens_per_step=1200",
    "--set=training.saving.validations=2",
    "--set=training.schedule.learning_rate=0.005",
    "--set=training.label_smoothing=0.0",
]


def train(folder: Path, lines: list[str], answers: list[str], *arguments: str) -> Path:
    """Train a small model on pairs of lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.en").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "train.de").write_text("\n".join(answers) + "\n", encoding="utf-8")
    files = ["--source", folder / "train.en", "--target", folder / "train.de", "--out", folder / "model"]
    heedful("train", "translation", *files, *SMALL, *arguments)
    return folder / "model"


def trained_once(factory: pytest.TempPathFactory, name: str, lines: list[str], steps: int) -> Path:
    """A model that copies lines, trained once for all processes that tests run in side by side; none writes to it."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(base / f"{name}.lock"):
        if not (base / f"{name}.trained").exists():
            train(base / name, lines, lines, "--steps", str(steps))
            (base / f"{name}.trained").touch()
    return base / name / "model"


@pytest.fixture(scope="session")
def copy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_once(tmp_path_factory, "copy", sentences(6000, seed=1), 400)


@pytest.fixture(scope="session")
def reverse_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = sentences(12000, seed=2)
    answers = [" ".join(reversed(line.split())) for line in lines]
    return train(tmp_path_factory.mktemp("reverse"), lines, answers, "--steps", "1200")


@pytest.fixture(scope="session")
def quick_copy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `copy_model`, with half the training: it copies short sentences of these words."""
    return trained_once(tmp_path_factory, "quick-copy", sentences(2500, seed=1), 200)


@pytest.fixture(scope="session")
def make_sentences() -> Callable[..., list[str]]:
    return sentences


@pytest.fixture
def untrained_model(tmp_path: Path) -> Path:
    """The folder of a small translation model with random weights."""
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    settings = EncoderDecoderConfig(tokenizer.vocabulary_size, 24, 29)
    config = ModelConfig("encoder_decoder", "translation", settings)
    save_model_folder(tmp_path / "model", EncoderDecoder(settings), tokenizer, config, "card")
    return tmp_path / "model"


@pytest.fixture(scope="session")
def small_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model folder of each task, by its name; nobody writes to them."""
    return write_folders(tmp_path_factory.mktemp("small"))
