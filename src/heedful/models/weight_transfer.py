"""A model's weights for another model of its family: for inputs of other sizes, with the same head or a new one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.layers.grid_positions import GridPositions, interpolate
from heedful.layers.patches import PatchEmbedding, resize_windows
from heedful.layers.positions import LearnedPositions
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision
from heedful.models.weights_file import load_parameters, parameter_tensors


def transfer_weights(
    source: nn.Module, model: nn.Module, *, with_head: bool = True, may_have_more: bool = False
) -> None:
    """Copy the weights of `source`, fitted to the sizes of `model`; what does not fit is a UserError.

    Without `with_head`, the head of `model` stays as it is. If it `may_have_more`, so do parts that `source` lacks.
    """
    own, found = parameter_tensors(model), {**parameter_tensors(source), **_fitted_tensors(source, model)}
    left_out = _names_in(source, _pooling(source)) - own.keys()
    kept = own.keys() if may_have_more else set()
    if not with_head:
        left_out |= _names_in(source, _head(source))
        kept = kept | _names_in(model, _head(model))
    taken = {name: tensor for name, tensor in found.items() if name not in left_out}
    load_parameters(model, {**{name: own[name] for name in kept}, **taken})


def _head(model: nn.Module) -> Sequence[nn.Module]:
    assert isinstance(model, EncoderOnly | Vision), "other families have no head but their vocabulary"
    return model.head_modules


def _pooling(model: nn.Module) -> Sequence[nn.Module]:
    """The parts that a model of the family has only for some heads."""
    return (model.pooler,) if isinstance(model, EncoderOnly) else ()


def _names_in(model: nn.Module, parts: Sequence[nn.Module]) -> set[str]:
    """The names of the parameters that belong only to the given parts of a model."""
    begins = tuple(f"{name}." for name, module in model.named_modules() if any(module is part for part in parts))
    return {name for name, _ in model.named_parameters() if name.startswith(begins)}


def _fitted_tensors(source: nn.Module, model: nn.Module) -> dict[str, Tensor]:
    """The parameters, by name, of the layers whose sizes depend on the sizes of inputs."""
    layers = dict(model.named_modules())
    pairs = [(name, layer, layers[name]) for name, layer in source.named_modules() if name in layers]
    return {f"{name}.{own}": tensor for name, layer, other in pairs for own, tensor in _fitted(layer, other).items()}


@torch.no_grad()
def _fitted(layer: nn.Module, other: nn.Module) -> dict[str, Tensor]:
    """The parameters of a layer at the size of another one, for the layers that can be resized."""
    match layer, other:
        case LearnedPositions(), LearnedPositions():  # a model for shorter texts takes the first positions
            return {"table": layer.table.detach()[: len(other.table)]}
        case GridPositions(), GridPositions() if layer.table.dim() == other.table.dim():
            return {"table": interpolate(layer.table.detach(), other.table.shape[:-1])}
        case PatchEmbedding(), PatchEmbedding() if layer.patch_size == other.patch_size:
            return {"projection.weight": resize_windows(layer.projection.weight, layer.window, other.window)}
    return {}
