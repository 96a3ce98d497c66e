"""From a model folder to the object with the verbs of its task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from heedful.errors import UserError
from heedful.layers.int8_linear import with_int8_weights
from heedful.machine import choose_device
from heedful.model_folder import LoadedModel, load_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.pipelines.classifier import Classifier
from heedful.pipelines.encoder import Encoder
from heedful.pipelines.image_classifier import ImageClassifier
from heedful.pipelines.language_model import LanguageModel
from heedful.pipelines.masked_language_model import MaskedLanguageModel
from heedful.pipelines.tagger import Tagger
from heedful.pipelines.translator import Translator

Precision = Literal["fp32", "int8"]
Pipeline = Translator | LanguageModel | Encoder | ImageClassifier

# By the task in config.json.
PIPELINES: dict[str, Callable[[LoadedModel], Pipeline]] = {
    "translation": Translator,
    "language_model": LanguageModel,
    "encoder": Encoder,
    "masked_language_model": MaskedLanguageModel,
    "classification": Classifier,
    "tagging": Tagger,
    "image_classifier": ImageClassifier,
}


def load(
    path: str | Path, device: str = "auto", max_length: int | None = None, precision: Precision = "fp32"
) -> Pipeline:
    """Load a model folder; `max_length` makes it take longer texts in one piece than it was trained with.

    For that, sinusoidal positions extend, learned ones are interpolated and rotary ones rescaled. With the
    precision `int8` a Transformer for translation computes with weights of 8 bits: faster on a CPU, from a width of
    256 up, and a little less exact.
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
    if precision == "int8":
        if not isinstance(loaded.network, EncoderDecoder):
            raise UserError(f"{path}: int8 is for Transformers that translate: leave the precision at fp32")
        with_int8_weights(loaded.network)
    return PIPELINES[loaded.config.task](loaded)


def load_translator(path: str | Path, device: str = "auto", precision: Precision = "fp32") -> Translator:
    """Load a model folder that must hold a translation model."""
    model = load(path, device, precision=precision)
    if not isinstance(model, Translator):
        raise UserError(f"{path} holds no translation model")
    return model
