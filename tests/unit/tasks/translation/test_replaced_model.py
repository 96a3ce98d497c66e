"""Lines are translated by one version of a model, whatever takes its place meanwhile."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from heedful.decoding import DecodingOptions
from heedful.errors import UserError
from heedful.model_folder import load_model_folder, save_model_folder
from heedful.tasks.computing import Computing
from heedful.tasks.translation.evaluation import evaluate_translation
from heedful.tasks.translation.lines import CHUNK_LINES, LineSettings, _cached_translator, translate_lines


def put_another_in_its_place(folder: Path) -> None:
    loaded = load_model_folder(folder)
    with torch.no_grad():
        for parameter in loaded.network.parameters():
            parameter.mul_(-1.5)
    save_model_folder(folder, loaded.network, loaded.tokenizer, loaded.config, "card")


def translated(folder: Path, engine: str, workers: int, between: Callable[[], None]) -> list[str]:
    """Some lines, then what is done `between`, then enough lines for processes of their own."""
    lines = [b"red dog %d\n" % number for number in range(2 * CHUNK_LINES + 100)]
    found: list[str] = []

    def blocks() -> Iterator[bytes]:
        yield b"".join(lines[:100])
        while len(found) < 100:
            time.sleep(0.01)
        between()
        yield b"".join(lines[100:])

    source = blocks()
    options = DecodingOptions(beam=1, max_length=3)
    settings = LineSettings(str(folder), options, Computing("cpu", engine), scores=True)
    translate_lines(settings, workers, lambda: next(source, b""), lambda out, _: found.extend(out), lambda *_: None)
    return found


@pytest.mark.parametrize(("engine", "workers"), [("core", 2), ("torch", 1)])
def test_one_process_goes_on_with_what_it_has_loaded(untrained_model: Path, engine: str, workers: int) -> None:
    _cached_translator.cache_clear()
    expected = translated(untrained_model, engine, workers, lambda: None)
    _cached_translator.cache_clear()
    assert translated(untrained_model, engine, workers, lambda: put_another_in_its_place(untrained_model)) == expected
    _cached_translator.cache_clear()
    assert translated(untrained_model, engine, workers, lambda: None) != expected


def test_processes_that_would_have_another_version_end_with_a_word(untrained_model: Path) -> None:
    whole = translated(untrained_model, "torch", 2, lambda: None)
    assert whole == translated(untrained_model, "torch", 1, lambda: None)
    with pytest.raises(UserError, match="was replaced while it was used: run it again"):
        translated(untrained_model, "torch", 2, lambda: put_another_in_its_place(untrained_model))


def test_an_evaluation_is_of_one_version(untrained_model: Path) -> None:
    settings = LineSettings(str(untrained_model), DecodingOptions(beam=1, max_length=3), Computing("cpu", "torch"))
    settings = settings.of_this_version()
    put_another_in_its_place(untrained_model)
    with pytest.raises(UserError, match="was replaced while it was used: run it again"):
        evaluate_translation(settings, 1, ["red dog"], ["dog"], lambda *_: None)
