"""Model folders in Hugging Face's layout: config.json, safetensors, and tokenizer.json if there is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heedful.config import nearest, read_json
from heedful.data.tokenizer import Tokenizer
from heedful.errors import UserError
from heedful.interop import bert, gpt2, marian, vit, xlnet
from heedful.interop.mapping import Imported, Tensors
from heedful.model_folder import LoadedModel, ModelConfig, model_card, save_model_folder
from heedful.models.families import FAMILIES
from heedful.models.weights_file import load_parameters

# By the `model_type` in config.json.
CONVERTERS: dict[str, Callable[[dict[str, Any], Tensors], Imported]] = {
    "bert": bert.convert,
    "gpt2": gpt2.convert,
    "marian": marian.convert,
    "vit": vit.convert,
    "xlnet": xlnet.convert,
}


@dataclass(frozen=True)
class ImportedFolder:
    """The model, and what a person should know of the import."""

    loaded: LoadedModel
    remarks: list[str]


def read_folder(folder: Path) -> ImportedFolder:
    """Read a model; nothing in the folder is executed, and every tensor must find its place."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    config = _read_config(folder)
    kind = config.get("model_type")
    if kind not in CONVERTERS:
        raise UserError(f"{folder / 'config.json'}: its model_type is {kind!r}: {nearest(str(kind), list(CONVERTERS))}")
    _check_token_ids(folder / "config.json", config)
    tensors = Tensors(_read_tensors(folder))
    try:
        imported = CONVERTERS[kind](config, tensors)
        if getattr(imported.settings, "vocabulary_size", None) is not None:
            imported.settings.special_tokens.check(imported.settings.vocabulary_size, "special_tokens")
        if tensors.left_over:
            raise UserError(f"tensors that have no place in the model: {', '.join(tensors.left_over)}")
        network = FAMILIES[imported.family].build(imported.settings)
        load_parameters(network, imported.tensors)
    except KeyError as error:
        raise UserError(f"{folder / 'config.json'}: the setting {error.args[0]!r} is missing") from None
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    tokenizer, remarks = _read_tokenizer(folder, imported)
    settings = ModelConfig(imported.family, imported.task, imported.settings, labels=imported.labels)
    return ImportedFolder(LoadedModel(network.eval(), settings, tokenizer), remarks)


def import_folder(folder: Path, out: Path) -> ImportedFolder:
    """Make a heedful model folder of a foreign one."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} already exists: choose another folder")
    found = read_folder(folder)
    loaded = found.loaded
    card = model_card(
        out.name,
        f"Imported from the folder {folder.name}, which was in Hugging Face's layout.",
        f"heedful info {out.name}",
        loaded.config.model.summary(),
        {},
    )
    save_model_folder(out, loaded.network, loaded.tokenizer, loaded.config, card)
    return found


def _read_config(folder: Path) -> dict[str, Any]:
    """config.json, and what other files say: how pixels are normalised, and which token is which."""
    config = read_json(folder / "config.json")
    pixels, tokens = folder / "preprocessor_config.json", folder / "tokenizer.json"
    if pixels.is_file():
        found = read_json(pixels)
        config |= {name: found[name] for name in ("image_mean", "image_std") if name in found}
    if tokens.is_file():
        config["added_tokens"] = {each["content"]: each["id"] for each in read_json(tokens).get("added_tokens", [])}
    return config


def _check_token_ids(file: Path, config: dict[str, Any]) -> None:
    size = config.get("vocab_size")
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        token = config.get(name)
        if size is None or token is None:
            continue
        if type(token) is not int or not 0 <= token < size:
            raise UserError(f"{file}: {name} is {token!r}, but must be a whole number from 0 to {size - 1}")


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        files = sorted({folder / name for name in read_json(index)["weight_map"].values()})
    else:
        files = [folder / "model.safetensors"]
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not file.is_file():
            hint = ""
            if list(folder.glob("*.bin")):
                hint = "; its .bin files hold Python objects, which heedful does not load: save it as safetensors"
            raise UserError(f"{file} is missing{hint}")
        try:
            tensors |= load_file(file)
        except (SafetensorError, OSError) as error:
            raise UserError(f"{file} is broken: {error}") from None
    return tensors


def _read_tokenizer(folder: Path, imported: Imported) -> tuple[Tokenizer | None, list[str]]:
    file = folder / "tokenizer.json"
    if imported.task == "image_classifier":
        return None, []
    if not file.is_file():
        return None, [f"{folder} has no tokenizer.json: the model can be inspected, but takes no text"]
    content = read_json(file)
    # Tokens such as [MASK] are put in by heedful itself: text that looks like one stays text.
    content["added_tokens"] = []
    content["post_processor"] = None
    content["truncation"] = content["padding"] = None
    return Tokenizer.from_json(json.dumps(content), imported.settings.special_tokens), []
