"""From a model folder to the object with the verbs of its task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from heedful.errors import UserError
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import load_model_folder
from heedful.tasks.declaration import resolve
from heedful.tasks.registry import all_tasks

if TYPE_CHECKING:
    from heedful.tasks.encoding.pipeline import Encoder
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.language_modeling.pipeline import LanguageModel
    from heedful.tasks.translation.pipeline import Translator

Precision = Literal["fp32", "int8"]

Pipeline: TypeAlias = "Translator | LanguageModel | Encoder | ImageClassifier"


@needs_torch("loading a model")
def load(
    path: str | Path,
    device: str = "auto",
    max_length: int | None = None,
    precision: Precision = "fp32",
    shortlist: bool = False,
) -> Pipeline:
    """Load a model folder; `max_length` makes it take longer texts in one piece than it was trained with.

    For that, sinusoidal positions extend, learned ones are interpolated and rotary ones rescaled; biases by distance
    have no limit. With the precision `int8` a Transformer for translation computes with weights of 8 bits: faster on a
    CPU, from a width of 256 up, and a little less exact. With `shortlist` it uses that of its folder (see `heedful
    shortlist`).
    """
    from heedful.layers.int8_linear import with_int8_weights
    from heedful.machine.devices import choose_device
    from heedful.models.encoder_decoder import EncoderDecoder
    from heedful.models.shortlist import load_shortlist
    from heedful.models.shortlist_output import ShortlistOutput

    loaded = load_model_folder(Path(path))
    if max_length is not None:
        if max_length < 1:
            raise UserError(f"max_length is {max_length}, but must be at least 1")
        if not hasattr(loaded.network, "resize_positions"):
            raise UserError(f"{path} takes no text, for which max_length would be: give classify its resolution")
        loaded.network.resize_positions(max_length)
    loaded.network.to(choose_device(device))
    if shortlist:
        if not isinstance(loaded.network, EncoderDecoder):
            raise UserError(f"{path}: only Transformers that translate have a shortlist")
        found = load_shortlist(Path(path), loaded.config.model.vocabulary_size)
        loaded.network.shortlist = ShortlistOutput(found, loaded.network.output)
    if precision == "int8":
        if not isinstance(loaded.network, EncoderDecoder):
            raise UserError(f"{path}: int8 is for Transformers that translate: leave the precision at fp32")
        with_int8_weights(loaded.network)
    pipeline: Pipeline = resolve(all_tasks()[loaded.config.task].pipeline)(loaded)
    return pipeline


def load_translator(
    path: str | Path, device: str = "auto", precision: Precision = "fp32", shortlist: bool = False
) -> Translator:
    """Load a model folder that must hold a translation model."""
    from heedful.tasks.translation.pipeline import Translator

    model = load(path, device, precision=precision, shortlist=shortlist)
    if not isinstance(model, Translator):
        raise UserError(f"{path} holds no translation model")
    return model
