"""A model on disk: config.json, model.safetensors, tokenizer.json and a model card, all of it data."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import heedful
from heedful.config import from_dict, read_json, shown, to_dict
from heedful.errors import UserError
from heedful.files import write_file, write_tensors
from heedful.settings.families import FAMILY_SETTINGS
from heedful.tasks.registry import all_tasks
from heedful.text.documents import DocumentUnit
from heedful.text.tokenizer import Tokenizer
from heedful.text.training_lines import TrainingLines

if TYPE_CHECKING:
    from torch import nn

FORMAT = 1


@dataclass(frozen=True)
class ModelConfig:
    """The contents of config.json; `model` holds the settings of the family.

    `document` is what a document was in the training of a language model, which older folders do not say.
    """

    family: str
    task: str
    model: Any
    format: int = FORMAT
    heedful_version: str = heedful.__version__
    source_language: str | None = None
    target_language: str | None = None
    labels: tuple[str, ...] = ()
    has_tokenizer: bool = True
    training_lines: TrainingLines | None = None
    document: DocumentUnit | None = None


@dataclass(frozen=True)
class LoadedModel:
    """What a model folder holds, and what the folder is called."""

    network: Any
    config: ModelConfig
    tokenizer: Tokenizer | None
    name: str = ""

    @property
    def text_tokenizer(self) -> Tokenizer:
        """The tokenizer; a model that was imported without one takes no text."""
        if self.tokenizer is None:
            raise UserError("this model has no tokenizer: it was imported from a folder without tokenizer.json")
        return self.tokenizer


def save_model_folder(
    folder: Path, model: nn.Module, tokenizer: Tokenizer | None, config: ModelConfig, card: str
) -> None:
    """Write or replace a model folder, file by file, each in one step."""
    from heedful.models.weights_file import parameter_tensors

    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer.json")
    config = replace(config, has_tokenizer=tokenizer is not None)
    write_file(folder / "config.json", json.dumps(to_dict(config), indent=2) + "\n")
    write_file(folder / "README.md", card)
    write_tensors(folder / "model.safetensors", parameter_tensors(model), {"format": "pt"})


def load_model_folder(folder: Path) -> LoadedModel:
    """Read a model folder; nothing in it is executed."""
    from heedful.models.families import FAMILIES

    config = check_model_folder(folder)
    family, file = FAMILIES[config.family], folder / "model.safetensors"
    shapes = stored_shapes(file)
    try:
        model = family.build_unfilled(config.model, shapes)
    except UserError as error:
        raise UserError(f"{file} and config.json: {error}") from None
    load_weights(folder, model)
    tokenizer = load_tokenizer(folder, config) if config.has_tokenizer else None
    return LoadedModel(model.eval(), config, tokenizer, folder.resolve().name)


def load_tokenizer(folder: Path, config: ModelConfig) -> Tokenizer:
    """The tokenizer of a model folder, which must go with the model."""
    file = folder / "tokenizer.json"
    tokenizer = Tokenizer.load(file, config.model.special_tokens)
    check_tokenizer(file, tokenizer, config.model.vocabulary_size)
    return tokenizer


def check_tokenizer(file: Path, tokenizer: Tokenizer, vocabulary: int) -> None:
    """Raise a UserError if a tokenizer gives ids that a model with so many tokens does not have."""
    if tokenizer.vocabulary_size > vocabulary:
        raise UserError(f"{file} has {tokenizer.vocabulary_size} tokens, but the model in config.json has {vocabulary}")
    if tokenizer.largest_id >= vocabulary:
        raise UserError(
            f"{file} has a token with the id {tokenizer.largest_id}, but config.json has {vocabulary} tokens"
        )


def stored_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in a safetensors file, of which only the beginning is read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "np") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} is broken: {error}") from None


def load_weights(folder: Path, model: nn.Module) -> None:
    """Give a model the weights of a model folder; what does not fit is an error that lists it.

    The parameters lie in the file, mapped into memory: processes with the same model share it, and what one of them
    writes is its own. The file may be replaced meanwhile, as `write_tensors` does.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from heedful.models.weights_file import adopt_parameters, check_finite, load_parameters

    try:
        tensors = load_file(folder / "model.safetensors")
    except (SafetensorError, OSError) as error:
        raise UserError(f"{folder / 'model.safetensors'} is broken: {error}") from None
    try:
        # Windows does not let a file be replaced that is mapped: there the weights are copied.
        (load_parameters if sys.platform == "win32" else adopt_parameters)(model, tensors)
        check_finite(tensors)
    except UserError as error:
        raise UserError(f"{folder / 'model.safetensors'}: {error}") from None


def check_model_folder(folder: Path) -> ModelConfig:
    """The settings of a model folder that has all its files."""
    if not folder.is_dir():
        raise UserError(f"there is no model folder {folder}")
    for name in ("config.json", "model.safetensors"):
        _require_file(folder, name)
    config = read_config(folder)
    if config.has_tokenizer:
        _require_file(folder, "tokenizer.json")
    return config


def _require_file(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        hint = " (its training has not come to its first validation)" if (folder / "run").is_dir() else ""
        raise UserError(f"{folder} is not a complete model folder: {name} is missing{hint}")


def read_config(folder: Path) -> ModelConfig:
    """The settings in a model folder's config.json."""
    file = folder / "config.json"
    data = read_json(file)
    if data.get("format") != FORMAT:
        raise UserError(
            f"{file} has format {shown(data.get('format'))}; heedful {heedful.__version__} reads format {FORMAT}"
        )
    family = data.get("family")
    if not isinstance(family, str) or family not in FAMILY_SETTINGS:
        raise UserError(f"{file}: its family is {shown(family)}, expected one of {', '.join(FAMILY_SETTINGS)}")
    try:
        data.setdefault("task", "translation")  # folders written before there were other tasks
        model = from_dict(FAMILY_SETTINGS[family], data.pop("model", None), "model")
        if getattr(model, "vocabulary_size", None) is not None:  # images have none
            model.special_tokens.check(model.vocabulary_size, "model.special_tokens")
        config = replace(from_dict(ModelConfig, {**data, "model": None}), model=model)
        _check_parts(config)
        return config
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def _check_parts(config: ModelConfig) -> None:
    """Raise a UserError unless the parts of a configuration, each of which is fine by itself, go together."""
    tasks = all_tasks()
    if config.task not in tasks:
        raise UserError(f"its task is {shown(config.task)}, expected one of {', '.join(tasks)}")
    families, head = tasks[config.task].families, tasks[config.task].head
    if config.family not in families:
        raise UserError(f"its family is {config.family!r}, but the task {config.task!r} needs {' or '.join(families)}")
    if config.family == "vision":
        if config.has_tokenizer:
            raise UserError("has_tokenizer is True, but a model of images has none")
        return
    if config.model.vocabulary_size is None:
        raise UserError("setting 'model.vocabulary_size' is None, expected int")
    if head is None:
        return
    if config.model.head != head:
        raise UserError(f"setting 'model.head' is {config.model.head!r}, but the task {config.task!r} needs {head!r}")
    if head == "masked" and config.model.special_tokens.mask is None:
        raise UserError("setting 'model.special_tokens.mask' is None, expected int")
    if head in ("classes", "tags") and len(config.labels) != config.model.num_labels:
        raise UserError(f"there are {len(config.labels)} labels, but model.num_labels is {config.model.num_labels}")


def model_card(name: str, what: str, usage: str, details: str, scores: dict[str, float]) -> str:
    """A README.md for people who come across the folder."""
    rows = "\n".join(f"| {key} | {value:.4f} |" for key, value in scores.items())
    return f"""# {name}

{what}

```
{usage}
```

{details}

Measured on the held-out part of its training data:

| measure | value |
|---|---|
{rows}
"""
