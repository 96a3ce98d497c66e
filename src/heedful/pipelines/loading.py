"""From a model folder to the object with the verbs of its task."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heedful.errors import UserError
from heedful.machine import choose_device
from heedful.model_folder import load_model_folder

if TYPE_CHECKING:
    from heedful.pipelines.encoder import Encoder
    from heedful.pipelines.image_classifier import ImageClassifier
    from heedful.pipelines.language_model import LanguageModel
    from heedful.pipelines.translator import Translator

Pipeline: TypeAlias = "Translator | LanguageModel | Encoder | ImageClassifier"

# By the task in config.json: the file and the class, imported when it is loaded, for no command needs them all.
PIPELINES = {
    "translation": ("translator", "Translator"),
    "language_model": ("language_model", "LanguageModel"),
    "encoder": ("encoder", "Encoder"),
    "masked_language_model": ("masked_language_model", "MaskedLanguageModel"),
    "classification": ("classifier", "Classifier"),
    "tagging": ("tagger", "Tagger"),
    "image_classifier": ("image_classifier", "ImageClassifier"),
}


def load(path: str | Path, device: str = "auto", max_length: int | None = None) -> Pipeline:
    """Load a model folder; `max_length` makes it take longer texts in one piece than it was trained with.

    For that, sinusoidal positions extend, learned ones are interpolated and rotary ones rescaled.
    """
    loaded = load_model_folder(Path(path))
    if loaded.config.task not in PIPELINES:
        raise UserError(f"{path}: its task is {loaded.config.task!r}, expected one of {', '.join(PIPELINES)}")
    if max_length is not None:
        if max_length < 1:
            raise UserError(f"max_length is {max_length}, but must be at least 1")
        if not hasattr(loaded.network, "resize_positions"):
            raise UserError(f"{path} takes no text, for which max_length would be: give classify its resolution")
        loaded.network.resize_positions(max_length)
    loaded.network.to(choose_device(device))
    file, name = PIPELINES[loaded.config.task]
    pipeline: Pipeline = getattr(import_module(f"heedful.pipelines.{file}"), name)(loaded)
    return pipeline


def load_translator(path: str | Path, device: str = "auto") -> Translator:
    """Load a model folder that must hold a translation model."""
    from heedful.pipelines.translator import Translator

    model = load(path, device)
    if not isinstance(model, Translator):
        raise UserError(f"{path} holds no translation model")
    return model
