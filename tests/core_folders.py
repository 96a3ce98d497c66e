"""Model folders of odd sizes with random weights, and the same model from them by both engines."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.config import from_dict
from heedful.core.interface import engine
from heedful.core.library import instruction_set
from heedful.core.model import CoreModel
from heedful.model_folder import ModelConfig, check_model_folder, load_model_folder, save_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.families import FAMILY_SETTINGS
from heedful.text.shortlist import Shortlist
from heedful.text.tokenizer import Tokenizer

VOCABULARY = 31
TASKS = {"encoder_decoder": "translation", "decoder_only": "language_model"}
HEAD_TASKS = {
    "masked": "masked_language_model",
    "classes": "classification",
    "tags": "tagging",
    "none": "encoder",
}

STACK: dict[str, Any] = {
    "num_layers": 2,
    "attention": {"num_heads": 3, "key_width": 6, "value_width": 5},
    "feed_forward": {"inner_width": 23},
}
BASES: dict[str, dict[str, Any]] = {
    "encoder_decoder": {"positions": "sinusoidal", "encoder": STACK, "decoder": {**STACK, "num_layers": 3}},
    "decoder_only": {"positions": "rotary", "stack": {**STACK, "norm": "pre"}},
    "encoder_only": {"positions": "learned", "stack": STACK, "special_tokens": {"mask": 3}},
}


def merged(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Settings with some of them, at any depth, replaced."""
    found = dict(settings)
    for name, value in changes.items():
        inner = isinstance(value, dict) and isinstance(found.get(name), dict) and "scheme" not in value
        found[name] = merged(found[name], value) if inner else value
    return found


def family_settings(family: str, changes: dict[str, Any] | None = None, **stack: Any) -> dict[str, Any]:
    """The settings of a small model, with some changed; `stack` changes those of all its stacks."""
    base = {"vocabulary_size": VOCABULARY, "width": 18, "max_length": 61, **BASES[family]}
    names = ("encoder", "decoder") if family == "encoder_decoder" else ("stack",)
    return merged(merged(base, dict.fromkeys(names, stack)), changes or {})


@torch.no_grad()
def spread(model: nn.Module, output: float = 3.0) -> None:
    """Give a model random weights with which its parts matter and its logits lie apart; untrained ones are small."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter += 0.3 * torch.randn(parameter.shape)
        elif name.endswith("biases") or ".positions." in name or "segments" in name or name.startswith("positions"):
            nn.init.normal_(parameter)
        else:
            parameter *= 1.5
    if isinstance(getattr(model, "output", None), nn.Linear):
        model.output.weight *= output


def save(
    folder: Path,
    family: str,
    settings: dict[str, Any],
    *,
    seed: int = 1,
    tokenizer: Tokenizer | None = None,
    output: float = 3.0,
    change: Callable[[Any], None] | None = None,
) -> Path:
    """Write the folder of a model with random weights."""
    torch.manual_seed(seed)
    config = from_dict(FAMILY_SETTINGS[family], settings)
    model = FAMILIES[family].build(config)
    spread(model, output)
    if change:
        with torch.no_grad():
            change(model)
    task = HEAD_TASKS[config.head] if family == "encoder_only" else TASKS[family]
    labels = tuple(map(str, range(getattr(config, "num_labels", 0))))
    save_model_folder(folder, model, tokenizer, ModelConfig(family, task, config, labels=labels), "card")
    return folder


def core_model(
    folder: Path,
    *,
    int8: bool = False,
    max_length: int | None = None,
    threads: int = 1,
    shortlist: Shortlist | None = None,
) -> CoreModel:
    """The model of a folder, computed by the engine."""
    config = check_model_folder(folder)
    model = CoreModel(folder, config.family, config.model, int8=int8, max_length=max_length, shortlist=shortlist)
    model.threads = threads
    return model


def torch_model(folder: Path, max_length: int | None = None) -> Any:
    """The model of a folder, computed by torch."""
    network = load_model_folder(folder).network
    if max_length is not None:
        network.resize_positions(max_length)
    return network


def both(folder: Path, max_length: int | None = None) -> tuple[CoreModel, Any]:
    """The model of a folder by both engines."""
    return core_model(folder, max_length=max_length), torch_model(folder, max_length)


def texts(lengths: Sequence[int], seed: int, vocabulary: int = VOCABULARY) -> list[list[int]]:
    """Ids of texts of these lengths, none of them special."""
    draw = np.random.default_rng(seed)
    return [draw.integers(13, vocabulary, length).tolist() for length in lengths]


@contextmanager
def instructions(name: str):
    """Compute with other instructions for a while; what was made before must be gone by then."""
    before = instruction_set()
    assert not engine().heedful_use_instruction_set(name.encode())
    try:
        yield
    finally:
        assert not engine().heedful_use_instruction_set(before.encode())


def known_instructions() -> list[str]:
    """Those that this processor has."""
    before = instruction_set().encode()
    found = [
        name
        for name in ("portable", "avx2", "avx-vnni", "avx512-vnni")
        if not engine().heedful_use_instruction_set(name.encode())
    ]
    engine().heedful_use_instruction_set(before)
    return found
