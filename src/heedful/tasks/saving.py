"""From a model in memory to a model folder, which is loaded once, as a check, before it gets its name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import heedful
from heedful.config import require_whole, shown
from heedful.core.model import CoreModel
from heedful.errors import UserError
from heedful.files import is_run, new_folder
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import LoadedModel, ModelConfig, model_card, save_model_folder
from heedful.storage import TEMPORARY, writing
from heedful.tasks.described import Described
from heedful.tasks.loading import load
from heedful.tasks.registry import all_tasks
from heedful.text.tokenizer import Tokenizer
from heedful.weights_writer import LARGEST_SHARD, SHARD_BYTES, move_weights

if TYPE_CHECKING:
    from torch import nn

    from heedful.tasks.loading import Pipeline


@needs_torch("saving a model")
def save(
    model: Pipeline | nn.Module,
    folder: str | Path,
    *,
    tokenizer: Tokenizer | None = None,
    labels: Sequence[str] = (),
    source_language: str | None = None,
    target_language: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a model folder from a pipeline that `load` gave (with the engine "torch") or a model that `build` made.

    A pipeline brings its tokenizer, labels and languages; a model needs a tokenizer if it takes text, and the labels of
    its classes if it has any. The folder must be new or empty, or hold the same model, whose weights are then replaced.
    If something is wrong, such as a weight that is NaN, the folder is left as it was. Weights of more than
    `shard_bytes` are written into several numbered files.
    """
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        raise UserError(f"the folder is {shown(folder)}, but must be the path of a folder")
    require_whole(shard_bytes, "shard_bytes", 1, LARGEST_SHARD)
    out = Path(folder)
    given = (tokenizer, tuple(labels), source_language, target_language)
    if isinstance(model, Described):
        if given != (None, (), None, None):
            raise UserError("a pipeline has a tokenizer, labels and languages of its own: leave them out")
        found = _of_pipeline(model)
    else:
        found = _of_network(model, *given)
    _check_place(out)
    if out.is_dir() and any(out.iterdir()):
        _update(out, found, shard_bytes)
        return
    with new_folder(out) as place:
        _write(place, out, found, shard_bytes)


def _of_pipeline(pipeline: Described) -> LoadedModel:
    if isinstance(pipeline.model, CoreModel):
        raise UserError(
            'the engine "core" computes this model, and its weights cannot change: load it with engine="torch"'
        )
    config = replace(pipeline.config, heedful_version=heedful.__version__)
    return LoadedModel(pipeline.model, config, getattr(pipeline, "tokenizer", None))


def _of_network(
    network: nn.Module,
    tokenizer: Tokenizer | None,
    labels: tuple[str, ...],
    source_language: str | None,
    target_language: str | None,
) -> LoadedModel:
    """The same for a bare model, whose task follows from its family and its head."""
    from heedful.models.families import FAMILIES

    family = next((name for name, each in FAMILIES.items() if type(network) is each.build), None)
    if family is None:
        raise UserError(f"a {type(network).__name__} cannot be saved: expected a pipeline, or one of heedful's models")
    head = getattr(network.config, "head", None)
    tasks = {each.head: name for name, each in all_tasks().items() if family in each.families}
    task = tasks.get(head) or tasks[None]
    if labels and family != "vision" and head not in ("classes", "tags"):
        hint = 'build it with head="classes" or head="tags", or leave them out' if head else "leave them out"
        raise UserError(f"labels are {shown(list(labels))}, but the model has no classes or tags to name: {hint}")
    if tokenizer is None and family != "vision":
        raise UserError("a model that takes text cannot be used without its tokenizer: give tokenizer=...")
    config = ModelConfig(
        family,
        task,
        network.config,
        labels=labels,
        source_language=source_language,
        target_language=target_language,
    )
    return LoadedModel(network, config, tokenizer)


def _check_place(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder")
    if is_run(out / "run"):
        raise UserError(f"{out} holds a training run, which would continue with other weights: choose another folder")


def _write(place: Path, out: Path, model: LoadedModel, shard_bytes: int) -> None:
    """Write the files of a model that is to become `out`, and load them as a check."""
    from heedful.layers.int8_linear import Int8Linear
    from heedful.models.families import FAMILIES
    from heedful.models.weights_file import check_finite, check_shapes, parameter_tensors

    network, config = model.network, model.config
    if any(isinstance(each, Int8Linear) for each in network.modules()):
        raise UserError('the model has weights of 8 bits, which were rounded: load it with precision="fp32"')
    tensors = parameter_tensors(network)
    if getattr(network, "max_length", None) != getattr(config.model, "max_length", None):
        raise UserError(f"the model was made to take texts of {network.max_length} tokens: load it without max_length")
    check_shapes(FAMILIES[config.family].build_without_memory(config.model), {n: t.shape for n, t in tensors.items()})
    check_finite(tensors)
    what = f"Written by heedful.save of heedful {heedful.__version__}."
    card = model_card(out.name, what, f"heedful info {out.name}", config.model.summary(), {})
    save_model_folder(place, network, model.tokenizer, config, card, shard_bytes)
    try:
        load(place, "cpu", engine="torch")
    except UserError as error:
        raise UserError(str(error).replace(str(place), str(out))) from None


def _update(out: Path, model: LoadedModel, shard_bytes: int) -> None:
    """Replace the weights in the same model's folder, in one step."""
    with writing(out), tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=out.parent) as inside:
        place = Path(inside, "folder")
        _write(place, out, model, shard_bytes)
        for name in ("config.json", "tokenizer.json"):
            old, new = ((each / name).read_bytes() if (each / name).is_file() else b"" for each in (out, place))
            if old != new:
                raise UserError(f"{out} holds something else, by its {name}: choose a folder that is new or empty")
        (place / "README.md").replace(out / "README.md")
        move_weights(place, out)
