"""How a folder of the sentence-transformers library turns texts into vectors: modules.json and the files it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.config import read_json, read_json_value, shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.settings.encoder_only import Pooling, VectorConfig

MODULES = "modules.json"
# By the names of the library's flags, and by the values of its newer setting `pooling_mode`.
POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "class_token",
    "pooling_mode_mean_tokens": "mean",
    "cls": "class_token",
    "mean": "mean",
}
FLAG = "pooling_mode_"
# The modules of such a folder, in this order; the last may be missing.
KINDS = ["Transformer", "Pooling", "Normalize"]


def read_vectors(folder: Path, width: int, max_length: int) -> VectorConfig | None:
    """What a folder with modules.json says, for a model of that width; unsupported settings are refused by name."""
    file = folder / MODULES
    if not file.is_file():
        return None
    modules = _modules(file)
    kinds = [kind for kind, _ in modules]
    if kinds not in (KINDS, KINDS[:2]):
        strange = next((kind for kind in kinds if kind not in KINDS), None)
        what = f"a module {shown(strange)}" if strange else f"the modules {', '.join(kinds) or 'none'}"
        raise UserError(f"{file}: {what} is not supported: heedful knows {', '.join(KINDS)}, in this order")
    if modules[0][1] not in ("", "."):
        raise UserError(
            f"{file}: its Transformer is in {shown(modules[0][1])}, and only the folder itself is supported"
        )
    _refuse_prompts(folder)
    settings = _optional(folder / "sentence_bert_config.json")
    longest = settings.optional_integer("max_seq_length", lowest=4)
    if longest is None:  # as the library does
        longest = min(_optional(folder / "tokenizer_config.json").integer("model_max_length", max_length), max_length)
    if longest > max_length:
        raise settings.error(f"max_seq_length is {longest}, but the model takes {max_length}")
    return VectorConfig(
        pooling=_pooling(folder / _inside(file, modules[1][1]) / "config.json", width),
        normalize=len(kinds) == len(KINDS),
        max_length=longest,
        cut="end",
        lowercase=settings.flag("do_lower_case", False),
    )


def _modules(file: Path) -> list[tuple[str, str]]:
    """The kind and the path of each module."""
    data = read_json_value(file)
    if not isinstance(data, list):
        raise UserError(f"{file} does not hold a list of modules")
    modules = []
    for each in data:
        kind, path = (each.get("type"), each.get("path")) if isinstance(each, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(path, str):
            raise UserError(f"{file}: each module needs a 'type' and a 'path' that are texts")
        own = kind.startswith("sentence_transformers.")
        modules.append((kind.rpartition(".")[2] if own else kind, path))
    return modules


def _inside(file: Path, path: str) -> str:
    """The path of a module, which must name a folder beside the list of modules."""
    if not path.isprintable() or Path(path).name != path:
        raise UserError(f"{file}: the path {shown(path)} is not that of a folder beside it")
    return path


def _optional(file: Path) -> ForeignConfig:
    return ForeignConfig(file, read_json(file) if file.is_file() else {})


def _pooling(file: Path, width: int) -> Pooling:
    values = read_json(file)
    config = ForeignConfig(file, values)
    if config.integer("word_embedding_dimension", width) != width:
        raise config.error(f"word_embedding_dimension is not the model's hidden_size, {width}")
    asked: Any = config.value("pooling_mode")
    if asked is None:
        asked = [name for name in values if name.startswith(FLAG) and config.flag(name, False)]
    modes = asked if isinstance(asked, list) else [asked]
    if len(modes) != 1 or not isinstance(modes[0], str) or modes[0] not in POOLINGS:
        names = ", ".join(each if isinstance(each, str) else shown(each) for each in modes) or "no pooling"
        raise config.error(f"{names} is not supported: heedful knows the class token alone and the mean of all tokens")
    return POOLINGS[modes[0]]


def _refuse_prompts(folder: Path) -> None:
    """Refuse a prompt before every text: whoever embeds would have to add it."""
    config = _optional(folder / "config_sentence_transformers.json")
    name = config.value("default_prompt_name")
    if name is not None:
        raise config.error(f"default_prompt_name is {shown(name)}, and prompts before texts are not supported")
