"""From a model folder to the object with the verbs of its task."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from heedful.config import require_whole, shown
from heedful.core.model import CoreModel
from heedful.errors import UserError
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import (
    LoadedModel,
    ModelConfig,
    check_model_folder,
    check_sealed_settings,
    load_model_folder,
    load_tokenizer,
)
from heedful.tasks.computing import Computing, Engine, Precision
from heedful.tasks.declaration import resolve
from heedful.tasks.engines import choose_engine, why_not_core
from heedful.tasks.registry import all_tasks

if TYPE_CHECKING:
    from heedful.tasks.encoding.pipeline import Encoder
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.language_modeling.pipeline import LanguageModel
    from heedful.tasks.translation.pipeline import Translator
    from heedful.text.shortlist import Shortlist

Pipeline: TypeAlias = "Translator | LanguageModel | Encoder | ImageClassifier"

# The most positions that a model may be given, as there may be tables for them: some models of today have as many.
LONGEST_CONTEXT = 2**20


def load(
    path: str | Path,
    device: str = "auto",
    max_length: int | None = None,
    precision: Precision = "fp32",
    shortlist: bool = False,
    engine: Engine = "auto",
) -> Pipeline:
    """Load a model folder; `max_length` makes it take longer texts in one piece than it was trained with.

    For that, sinusoidal positions are extended, learned ones interpolated and rotary ones rescaled; biases by distance
    have no limit. The `engine` "core" is heedful's own, which needs no torch; "auto" takes it wherever it can do what
    you ask, and otherwise "torch". With "torch" the pipeline's `model` is a module. With the precision `int8` a model
    computes with 8-bit weights: faster on a CPU, and a little less exact. With `shortlist` a translation model uses the
    shortlist in its folder (see `heedful shortlist`).
    """
    computing = Computing(device, engine, precision)
    return _load(path, computing, max_length, shortlist=shortlist)


def _load(
    path: str | Path,
    computing: Computing,
    max_length: int | None = None,
    *,
    shortlist: bool = False,
    shared: bool = False,
) -> Pipeline:
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"the model is {shown(path)}, but must be the path of a model folder")
    folder = Path(path)
    config = check_model_folder(folder)
    precision = computing.precision
    if max_length is not None:
        require_whole(max_length, "max_length", 1, LONGEST_CONTEXT)
    if precision not in get_args(Precision):
        raise UserError(f"precision is {precision!r}: choose one of {', '.join(get_args(Precision))}")
    of_folder = _shortlist_of(folder, config) if shortlist else None
    if choose_engine(computing.engine, config, computing.device) == "core":
        loaded = _load_core(folder, config, max_length, precision, of_folder)
    else:
        loaded = _load_torch(folder, computing, max_length, of_folder, shared=shared)
    pipeline: Pipeline = resolve(all_tasks()[config.task].pipeline)(loaded)
    return pipeline


def load_with(path: str | Path, computing: Computing, *, shared: bool = False) -> Pipeline:
    """Load a model folder, to compute as asked; the weights may be `shared` with other processes that load it.

    Sharing is for files that nobody overwrites while they are in use.
    """
    return _load(path, computing, shared=shared)


def _shortlist_of(folder: Path, config: ModelConfig) -> Shortlist:
    if config.family != "encoder_decoder":
        raise UserError(f"{folder}: only Transformers that translate have a shortlist")
    from heedful.text.shortlist import load_shortlist

    return load_shortlist(folder, config.model.vocabulary_size, config.model.special_tokens)


def _load_core(
    folder: Path, config: ModelConfig, max_length: int | None, precision: Precision, shortlist: Shortlist | None
) -> LoadedModel:
    int8 = precision == "int8"
    network = CoreModel(folder, config.family, config.model, int8=int8, max_length=max_length, shortlist=shortlist)
    check_sealed_settings(folder, network.metadata)
    tokenizer = load_tokenizer(folder, config, network.metadata) if config.has_tokenizer else None
    return LoadedModel(network, config, tokenizer, folder.resolve().name)


@needs_torch("loading a model")
def _load_torch(
    folder: Path, computing: Computing, max_length: int | None, shortlist: Shortlist | None, *, shared: bool
) -> LoadedModel:
    from heedful.layers.int8_linear import with_int8_weights
    from heedful.machine.devices import choose_device
    from heedful.models.encoder_decoder import EncoderDecoder
    from heedful.models.shortlist_output import ShortlistOutput

    loaded = load_model_folder(folder, shared=shared)
    if max_length is not None:
        if not hasattr(loaded.network, "resize_positions"):
            raise UserError(f"{folder} takes images, and max_length is for text: give classify a resolution instead")
        loaded.network.resize_positions(max_length)
    loaded.network.to(choose_device(computing.device))
    if shortlist:
        assert isinstance(loaded.network, EncoderDecoder)
        loaded.network.shortlist = ShortlistOutput(shortlist, loaded.network.output)
    if computing.precision == "int8":
        if not isinstance(loaded.network, EncoderDecoder):
            other = "" if why_not_core(loaded.config) else ", or the engine at auto"
            raise UserError(
                f"{folder}: torch has int8 for Transformers that translate alone: leave the precision at fp32{other}"
            )
        with_int8_weights(loaded.network)
    return loaded


def load_translator(
    path: str | Path, computing: Computing | None = None, shortlist: bool = False, *, shared: bool = False
) -> Translator:
    """Load a model folder, which must hold a translation model."""
    from heedful.tasks.translation.pipeline import Translator

    model = _load(path, computing or Computing(), shortlist=shortlist, shared=shared)
    if not isinstance(model, Translator):
        raise UserError(f"{path} holds no translation model")
    return model
