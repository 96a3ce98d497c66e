"""Small models of every task with random weights, and the server as users start it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import torch

from heedful.config import from_dict
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.text.tokenizer import Tokenizer

TEXTS = ["a red dog runs", "the sea is blue and the sun is red", "dog", "two birds and a house by the sea"]
LABELS = ("yes", "no", "maybe")
STACK = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))


def save_translator(folder: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(TEXTS * 3, 307)
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 41, encoder=STACK, decoder=STACK)
    settings = ModelConfig("encoder_decoder", "translation", config, source_language="en", target_language="de")
    save_model_folder(folder, EncoderDecoder(config), tokenizer, settings, "card")


def save_language_model(folder: Path) -> None:
    torch.manual_seed(2)
    tokenizer = Tokenizer.train([". ".join(TEXTS)], 307, whole_texts=True)
    stack = {"num_layers": 2, "norm": "pre", "attention": {"num_heads": 3}}
    settings = {"vocabulary_size": tokenizer.vocabulary_size, "width": 12, "max_length": 43, "stack": stack}
    config = from_dict(DecoderOnlyConfig, {**settings, "positions": "rotary"})
    save_model_folder(
        folder, DecoderOnly(config), tokenizer, ModelConfig("decoder_only", "language_model", config), "card"
    )


def save_encoder(folder: Path, head: str, task: str, segments: int = 2) -> None:
    torch.manual_seed(3)
    tokenizer = Tokenizer.train(TEXTS * 3, 307, mask=True)
    labels = LABELS if head in ("classes", "tags") else ()
    config = EncoderOnlyConfig(
        tokenizer.vocabulary_size, 24, 61, "rotary", EmbeddingConfig(segments=segments), STACK, head=head,
        num_labels=len(labels), special_tokens=tokenizer.special_tokens,
    )  # fmt: skip
    save_model_folder(
        folder, EncoderOnly(config), tokenizer, ModelConfig("encoder_only", task, config, labels=labels), "card"
    )


def save_vision(folder: Path) -> None:
    torch.manual_seed(4)
    config = VisionConfig((13, 17), (5, 4), 3, 3, 24, stack=STACK)
    settings = ModelConfig("vision", "image_classifier", config, labels=LABELS, has_tokenizer=False)
    save_model_folder(folder, Vision(config), None, settings, "card")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by the name of their task's verb."""
    root = tmp_path_factory.mktemp("served")
    folders = {name: root / name for name in ("translator", "writer", "classifier", "tagger", "guesser", "seer")}
    save_translator(folders["translator"])
    save_language_model(folders["writer"])
    save_encoder(folders["classifier"], "classes", "classification")
    save_encoder(folders["tagger"], "tags", "tagging")
    save_encoder(folders["guesser"], "masked", "masked_language_model")
    save_vision(folders["seer"])
    return folders


@pytest.fixture(scope="session")
def single_text_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a classifier that takes no pairs."""
    folder = tmp_path_factory.mktemp("served") / "single"
    save_encoder(folder, "classes", "classification", segments=0)
    return folder


@dataclass
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60)

    def metric(self, name: str) -> float:
        """The sum of a figure over all its labels."""
        lines = httpx.get(f"{self.url}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if re.match(rf"heedful_{name}(\{{.*\}})? ", line))

    def workers(self) -> list[int]:
        """The numbers of the worker processes."""
        found = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        return [int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line]


Start = Callable[..., contextlib.AbstractContextManager[Server]]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Start a server, and stop it as a service manager does; it must end by itself, without a word of trouble."""

    @contextlib.contextmanager
    def run(*arguments: str | Path) -> Iterator[Server]:
        log = tmp_path_factory.mktemp("log") / "stderr"
        command = [sys.executable, "-m", "heedful", "serve", *map(str, arguments), "--port", "0"]
        with log.open("wb") as stderr:
            process = subprocess.Popen(command, stderr=stderr, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            while b"http://" not in log.read_bytes():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
                    raise AssertionError(log.read_text())
            (url,) = re.findall(r"http://\S+", log.read_text())
            yield Server(process, url, log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert not re.search("Traceback|Warning", log.read_text()), log.read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    return run


@pytest.fixture(scope="session")
def server(start: Start, models: dict[str, Path]) -> Iterator[Server]:
    """A server with all models."""
    limits = ["--max-body", "1", "--max-texts", "29", "--queue", "61", "--max-tokens", "97", "--max-characters", "997"]
    with start(*models.values(), "--workers", "1", *limits) as running:
        yield running
