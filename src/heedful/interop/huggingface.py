"""Model folders in Hugging Face's layout: config.json, safetensors, and tokenizer.json if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from heedful.config import read_json, shown
from heedful.errors import UserError
from heedful.files import new_folder
from heedful.interop import bert, gpt2, marian, vit, xlnet
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.foreign_tokenizer import open_tokenizer
from heedful.interop.mapping import Imported, Tensors
from heedful.interop.sentence_modules import MODULES, read_vectors
from heedful.model_folder import LoadedModel, ModelConfig, check_tokenizer, model_card, save_model_folder
from heedful.models.families import FAMILIES
from heedful.models.weights_file import load_parameters
from heedful.text.tokenizer import Tokenizer
from heedful.weights_index import WEIGHTS, read_index, weights_path

# By the `model_type` in config.json.
CONVERTERS: dict[str, Callable[[ForeignConfig, Tensors], Imported]] = {
    "bert": bert.convert,
    "gpt2": gpt2.convert,
    "marian": marian.convert,
    "vit": vit.convert,
    "xlnet": xlnet.convert,
}


@dataclass(frozen=True)
class ImportedFolder:
    """The model, and what a user should know about the import."""

    loaded: LoadedModel
    remarks: list[str]


def read_folder(folder: Path) -> ImportedFolder:
    """Read a model; nothing in the folder is executed, and every tensor must have a place."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    config = _read_config(folder)
    kind = config.text("model_type", "")
    if kind not in CONVERTERS:
        raise config.error(f"its model_type is {shown(kind)}, and heedful imports {', '.join(CONVERTERS)}")
    tensors = Tensors(_read_tensors(folder))
    try:
        imported = CONVERTERS[kind](config, tensors)
        if getattr(imported.settings, "vocabulary_size", None) is not None:
            imported.settings.special_tokens.check(imported.settings.vocabulary_size, "special_tokens")
        if tensors.left_over:
            raise UserError(f"tensors that have no place in the model: {', '.join(tensors.left_over)}")
        network = _built(config, imported)
    except UserError as error:
        raise UserError(str(error) if str(error).startswith(str(folder)) else f"{folder}: {error}") from None
    imported = _with_vectors(folder, imported)
    tokenizer, remarks = _read_tokenizer(folder, config, imported)
    settings = ModelConfig(imported.family, imported.task, imported.settings, labels=imported.labels)
    return ImportedFolder(LoadedModel(network.eval(), settings, tokenizer), [*imported.remarks, *remarks])


def _built(config: ForeignConfig, imported: Imported) -> nn.Module:
    """The model with its weights, which must match the settings."""
    family = FAMILIES[imported.family]
    try:
        shapes = {name: each.shape for name, each in imported.tensors.items()}
        network = family.build_unfilled(imported.settings, shapes)
    except UserError as error:
        raise config.error(str(error)) from None
    load_parameters(network, imported.tensors)
    return network


def import_folder(folder: Path, out: Path) -> ImportedFolder:
    """Make a heedful model folder from a foreign one; if that fails, nothing is left behind."""
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
    with new_folder(out) as place:
        save_model_folder(place, loaded.network, loaded.tokenizer, loaded.config, card)
    return found


def _read_config(folder: Path) -> ForeignConfig:
    """config.json, with what other files say about how images are read and which token is which."""
    file, images = (folder / f"{name}.json" for name in ("config", "preprocessor_config"))
    return ForeignConfig(
        file,
        read_json(file),
        open_tokenizer(folder),
        ForeignConfig(images, read_json(images)) if images.is_file() else None,
    )


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = weights_path(folder)
    return _read_file(path) if path.name == WEIGHTS else _read_shards(path)


def _read_shards(index: Path) -> dict[str, Tensor]:
    """Each tensor from the file that the index names: another file may hold an old copy."""
    content = read_index(index)
    tensors: dict[str, Tensor] = {}
    for name in content.files:
        found = _read_file(index.parent / name)
        unlisted = sorted(found.keys() - content.places.keys())
        if unlisted:
            raise UserError(f"{index.parent / name} holds the tensor {unlisted[0]}, which {index.name} does not list")
        for tensor in (each for each, place in content.places.items() if place == name):
            if tensor not in found:
                raise UserError(f"{index}: weight_map puts the tensor {shown(tensor)} into {name}, which lacks it")
            tensors[tensor] = found[tensor]
    return tensors


def _read_file(file: Path) -> dict[str, Tensor]:
    if not file.is_file():
        hint = ""
        if list(file.parent.glob("*.bin")):
            hint = "; its .bin files hold Python objects, which heedful does not load: save it as safetensors"
        raise UserError(f"{file} is missing{hint}")
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} is broken: {error}") from None


def _with_vectors(folder: Path, imported: Imported) -> Imported:
    """The model with what the folder says about vectors; if it says nothing, with a remark about what is assumed."""
    if imported.family != "encoder_only":
        if not (folder / MODULES).is_file():
            return imported
        remark = f"{folder / MODULES} was not read: only models of the type bert give vectors of texts"
        return replace(imported, remarks=(*imported.remarks, remark))
    settings = imported.settings
    vectors = read_vectors(folder, settings.width, settings.max_length)
    if vectors is None:
        remark = (
            f"{folder} has no {MODULES}: `heedful embed` will take the class token, unless --pooling says otherwise"
        )
        return replace(imported, remarks=(*imported.remarks, remark))
    return replace(imported, settings=replace(settings, vectors=vectors))


def _read_tokenizer(folder: Path, config: ForeignConfig, imported: Imported) -> tuple[Tokenizer | None, list[str]]:
    if imported.task == "image_classifier":
        return None, []
    tokens, settings = config.tokens, imported.settings
    if tokens is None:
        why = (
            " (SentencePiece models are not read)" if list(folder.glob("*.spm")) + list(folder.glob("*.model")) else ""
        )
        return None, [f"{folder} has no tokenizer.json{why}: `heedful info` shows the model, but no command takes text"]
    tokens.check_framing(imported.family, settings.special_tokens, pairs=imported.task == "classification")
    tokenizer = tokens.for_model(settings.special_tokens, settings.vocabulary_size)
    check_tokenizer(tokens.file, tokenizer, settings.vocabulary_size)
    return tokenizer, []
