"""A model on disk: config.json, model.safetensors, tokenizer.json and a model card, all of it data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import heedful
from heedful.config import from_dict, read_json, shown, to_dict
from heedful.core.weight_shards import open_weights
from heedful.core.weights import Weights
from heedful.errors import UserError
from heedful.files import file_version, is_run, write_file
from heedful.settings.families import FAMILY_SETTINGS
from heedful.tasks.registry import all_tasks
from heedful.text.document_unit import DocumentUnit
from heedful.text.label_names import check_label_names
from heedful.text.tokenizer import Tokenizer
from heedful.text.training_lines import TrainingLines
from heedful.weights_index import WEIGHTS, weights_files, weights_path
from heedful.weights_seal import OF_SETTINGS, OF_TOKENIZER, checksum_of, unsealed
from heedful.weights_writer import SHARD_BYTES, WeightStream, stream_of, write_weights

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT = 1


@dataclass(frozen=True)
class ModelConfig:
    """The contents of config.json; `model` holds the settings of the family.

    `document` is what a document was in the training of a language model, and `pairs_only` says that a classifier
    learned from pairs of texts alone; older folders say neither.
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
    pairs_only: bool = False


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
    folder: Path,
    model: nn.Module | WeightStream,
    tokenizer: Tokenizer | None,
    config: ModelConfig,
    card: str,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write or replace a model folder, file by file, each in one step; the weights have checksums, and come last.

    They are those of a model, or come one at a time; if they are more than `shard_bytes`, they go into several files.
    """
    from heedful.models.weights_file import parameter_tensors

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = None if tokenizer is None else tokenizer.to_json()
    if vocabulary is not None:
        write_file(folder / "tokenizer.json", vocabulary)
    settings = to_dict(replace(config, has_tokenizer=tokenizer is not None))
    write_file(folder / "config.json", json.dumps(settings, indent=2) + "\n")
    write_file(folder / "README.md", card)
    # The weights come last, and have the checksums: whoever loads them before that, or after a kill, gets the old ones.
    encoded = None if vocabulary is None else vocabulary.encode("utf-8")
    weights = model if isinstance(model, WeightStream) else stream_of(parameter_tensors(model))
    write_weights(folder, weights, unsealed(encoded, _sealed_settings(settings)), shard_bytes)


def _sealed_settings(data: Mapping[str, Any]) -> bytes:
    """The part of config.json that the weights depend on; names of labels and languages are for people to change."""
    return json.dumps(_by_value({key: data.get(key) for key in ("family", "model")}), sort_keys=True).encode("utf-8")


def _by_value(data: Any) -> Any:
    """The data with whole numbers written in one way: to other programs, 0 and 0.0 are the same in JSON."""
    if isinstance(data, dict):
        return {key: _by_value(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_by_value(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data


def check_sealed_settings(folder: Path, metadata: Mapping[str, str]) -> None:
    """Raise a UserError if the settings in config.json are not those that the weights were written with."""
    file, expected = folder / "config.json", metadata.get(OF_SETTINGS)
    if expected is not None and checksum_of(_sealed_settings(read_json(file))) != expected:
        raise UserError(
            f"{file} does not have the settings that {WEIGHTS} was written with: its family or something under "
            '"model" has changed; put back a copy of it, or give the command that trained or imported the model again'
        )


def load_model_folder(folder: Path, *, shared: bool = False) -> LoadedModel:
    """Read a model folder; nothing in it is executed.

    If they are `shared`, the weights stay in the file, mapped into memory that other processes with the same model use
    too. It is for files that nobody changes: whatever is written into one then changes the model.
    """
    from heedful.models.families import FAMILIES
    from heedful.models.weights_file import adopt_parameters, check_finite

    config = check_model_folder(folder)
    with open_weights(folder) as file:
        file.check()
        try:
            model = FAMILIES[config.family].build_unfilled(config.model, file.shapes)
        except UserError as error:
            raise UserError(f"{file.path} and config.json: {error}") from None
        try:
            # Windows does not let a mapped file be replaced: there the weights are always read.
            tensors = _tensors(file, shared=shared and sys.platform != "win32")
            adopt_parameters(model, tensors)
            check_finite(tensors)
        except UserError as error:
            raise UserError(f"{file.path}: {error}") from None
    check_sealed_settings(folder, file.metadata)
    tokenizer = load_tokenizer(folder, config, file.metadata) if config.has_tokenizer else None
    return LoadedModel(model.eval(), config, tokenizer, folder.resolve().name)


def _tensors(weights: Weights, *, shared: bool) -> dict[str, Tensor]:
    """The tensors of files: in memory of their own, or `shared` with all processes that map the files."""
    import numpy as np
    import torch

    types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
    tensors = {}
    for name, stored in weights.tensors.items():
        if shared:
            content = weights.mapped(name)
        else:
            content = np.empty(stored.size, np.uint8)
            weights.read(name, into=content.data)
        tensors[name] = torch.from_numpy(content).view(types[stored.kind]).view(stored.shape)
    return tensors


def load_tokenizer(folder: Path, config: ModelConfig, metadata: Mapping[str, str]) -> Tokenizer:
    """The tokenizer of a model folder, which must match the model, and the metadata of its weights."""
    file = folder / "tokenizer.json"
    tokenizer = Tokenizer.load(file, config.model.special_tokens, metadata.get(OF_TOKENIZER))
    check_tokenizer(file, tokenizer, config.model.vocabulary_size)
    return tokenizer


def check_weights(folder: Path) -> Weights:
    """What a model folder's weights say about themselves; they and the settings must be as they were written."""
    with open_weights(folder) as file:
        file.check()
    check_sealed_settings(folder, file.metadata)
    return file


def folder_version(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What distinguishes the files of a model from others that take their place."""
    others = (folder / name for name in ("config.json", "tokenizer.json", "shortlist.safetensors"))
    found = (*others, weights_path(folder), *weights_files(folder))
    return {file.name: file_version(file.stat()) for file in found if file.is_file()}


def check_tokenizer(file: Path, tokenizer: Tokenizer, vocabulary: int) -> None:
    """Raise a UserError if a tokenizer gives ids that a model with this many tokens does not have."""
    if tokenizer.vocabulary_size > vocabulary:
        raise UserError(f"{file} has {tokenizer.vocabulary_size} tokens, but the model in config.json has {vocabulary}")
    if tokenizer.largest_id >= vocabulary:
        raise UserError(
            f"{file} has a token with the id {tokenizer.largest_id}, but config.json has {vocabulary} tokens"
        )


def check_model_folder(folder: Path) -> ModelConfig:
    """The settings of a model folder that has all its files."""
    if folder.is_file():
        raise UserError(f"{folder} is a file: name the folder that holds a model's config.json and {WEIGHTS}")
    if not folder.is_dir():
        raise UserError(f"there is no model folder {folder}")
    weights = weights_path(folder)
    if not weights.is_file():
        weights = weights_path(folder)  # several files have just taken the place of one
    if not any(file.is_file() for file in (folder / "config.json", weights)) and not is_run(folder / "run"):
        raise UserError(f"{folder} is not a model folder: it holds neither config.json nor {WEIGHTS}")
    for name in ("config.json", weights.name):
        _require_file(folder, name)
    config = read_config(folder)
    if config.has_tokenizer:
        _require_file(folder, "tokenizer.json")
    return config


def _require_file(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        if os.path.lexists(folder / name):
            raise UserError(f"{folder / name} is not a regular file, or a link that leads nowhere: put the file there")
        hint = " (its training has not come to its first validation)" if is_run(folder / "run") else ""
        raise UserError(f"{folder} is not a complete model folder: {name} is missing{hint}")


def read_config(folder: Path) -> ModelConfig:
    """The settings in a model folder's config.json."""
    file = folder / "config.json"
    data = read_json(file)
    if "format" not in data and "model_type" in data:
        raise UserError(
            f"{folder} holds a model in Hugging Face's layout: make it one of heedful's with heedful import"
        )
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
    """Raise a UserError unless the parts of a configuration, each of which is fine by itself, fit together."""
    tasks = all_tasks()
    check_label_names(config.labels, "setting 'labels'")
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
        raise UserError("setting 'model.vocabulary_size' is None, expected a whole number")
    if head is not None and config.model.head != head:
        raise UserError(f"setting 'model.head' is {config.model.head!r}, but the task {config.task!r} needs {head!r}")
    if head == "masked" and config.model.special_tokens.mask is None:
        raise UserError("setting 'model.special_tokens.mask' is None, expected a whole number")
    if head in ("classes", "tags") and len(config.labels) != config.model.num_labels:
        raise UserError(f"there are {len(config.labels)} labels, but model.num_labels is {config.model.num_labels}")


def model_card(name: str, what: str, usage: str, details: str, scores: dict[str, float]) -> str:
    """A README.md for people who come across the folder."""
    rows = "\n".join(f"| {key} | {value:.4f} |" for key, value in scores.items())
    table = f"""
Measured on the held-out part of its training data:

| measure | value |
|---|---|
{rows}
"""
    return f"""# {name}

{what}

```
{usage}
```

{details}
""" + (table if scores else "")
