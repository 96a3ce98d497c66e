"""A model on disk: config.json, model.safetensors, tokenizer.json and a model card, all of it data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import heedful
from heedful.config import from_dict, read_json, to_dict
from heedful.data.tokenizer import Tokenizer
from heedful.errors import UserError
from heedful.files import write_file, write_tensors
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.weights_file import load_parameters, parameter_tensors

FORMAT = 1


@dataclass(frozen=True)
class ModelConfig:
    """The contents of config.json."""

    model: EncoderDecoderConfig
    format: int = FORMAT
    family: str = "encoder_decoder"
    heedful_version: str = ""
    source_language: str | None = None
    target_language: str | None = None


def save_model_folder(
    folder: Path, model: EncoderDecoder, tokenizer: Tokenizer, config: ModelConfig, card: str
) -> None:
    """Write or replace a model folder, file by file, each in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder / "tokenizer.json")
    write_file(folder / "config.json", json.dumps(to_dict(config), indent=2) + "\n")
    write_file(folder / "README.md", card)
    write_tensors(folder / "model.safetensors", parameter_tensors(model), {"format": "pt"})


def load_model_folder(folder: Path) -> tuple[EncoderDecoder, Tokenizer, ModelConfig]:
    """Read a model folder; nothing in it is executed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config = check_model_folder(folder)
    model = EncoderDecoder(config.model)
    try:
        tensors = load_file(folder / "model.safetensors")
    except (SafetensorError, OSError) as error:
        raise UserError(f"{folder / 'model.safetensors'} is broken: {error}") from None
    try:
        load_parameters(model, tensors)
    except UserError as error:
        raise UserError(f"{folder / 'model.safetensors'}: {error}") from None
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    if tokenizer.vocabulary_size != config.model.vocabulary_size:
        raise UserError(
            f"{folder / 'tokenizer.json'} has {tokenizer.vocabulary_size} tokens, "
            f"but the model in config.json has {config.model.vocabulary_size}"
        )
    return model.eval(), tokenizer, config


def check_model_folder(folder: Path) -> ModelConfig:
    """The settings of a model folder that has all its files."""
    if not folder.is_dir():
        raise UserError(f"there is no model folder {folder}")
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            hint = " (its training has not come to its first validation)" if (folder / "run").is_dir() else ""
            raise UserError(f"{folder} is no complete model folder: {name} is missing{hint}")
    return read_config(folder)


def read_config(folder: Path) -> ModelConfig:
    """The settings in a model folder's config.json."""
    data = read_json(folder / "config.json")
    if data.get("format") != FORMAT:
        raise UserError(
            f"{folder / 'config.json'} has format {data.get('format')!r}; "
            f"heedful {heedful.__version__} reads format {FORMAT}"
        )
    try:
        return from_dict(ModelConfig, data)
    except UserError as error:
        raise UserError(f"{folder / 'config.json'}: {error}") from None


def model_card(config: ModelConfig, name: str, scores: dict[str, float], num_pairs: int) -> str:
    """A README.md for people who come across the folder."""
    model = config.model
    languages = f"{config.source_language or 'source'} to {config.target_language or 'target'}"
    rows = "\n".join(f"| {key} | {value:.4f} |" for key, value in scores.items())
    return f"""# {name}

A Transformer that translates {languages}, trained with heedful {heedful.__version__} on {num_pairs:,} sentence pairs.

```
heedful translate {name} < in.txt > out.txt
```

{model.encoder.num_layers}+{model.decoder.num_layers} layers of width {model.width}, a joint vocabulary of \
{model.vocabulary_size:,} byte-level subwords, lines of up to {model.max_length} subwords.

Measured on the held-out pairs of its training (BLEU with greedy search, on at most 200 of them):

| measure | value |
|---|---|
{rows}
"""
