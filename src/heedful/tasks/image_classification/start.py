"""Starting from another vision model: its weights at another size of images, or with other classes."""

from __future__ import annotations

from pathlib import Path

import torch

from heedful.errors import UserError
from heedful.layers.grid_positions import interpolate
from heedful.layers.patches import resize_windows
from heedful.model_folder import ModelConfig, check_model_folder, load_model_folder
from heedful.models.vision import Vision
from heedful.models.weights_file import load_parameters, parameter_tensors


def load_vision_config(folder: Path) -> ModelConfig:
    """The settings of a model folder that must hold a vision model."""
    config = check_model_folder(folder)
    if config.family != "vision":
        raise UserError(f"{folder} holds a model of the family {config.family!r}: a vision model is needed")
    return config


def fine_tuning_rate(config: ModelConfig) -> float:
    """A tenth of what suits random weights: those that know something already are to change slowly."""
    return round(0.1 * 2e-3 * 128 / config.model.width, 7)


@torch.no_grad()
def start_from_folder(model: Vision, folder: Path) -> None:
    """Copy the weights of a model folder, positions and windows interpolated; a head of other classes stays fresh."""
    loaded = load_model_folder(folder).network
    tensors = parameter_tensors(loaded)
    if loaded.config.patch_size == model.config.patch_size:
        name = "patches.projection.weight"
        tensors[name] = resize_windows(tensors[name], loaded.patches.window, model.patches.window)
    table = tensors["positions.table"]
    if table.dim() == model.positions.table.dim():
        tensors["positions.table"] = interpolate(table, model.config.grid)
    own = parameter_tensors(model)
    for name in ("output.weight", "output.bias"):
        if name not in tensors or tensors[name].shape[0] != own[name].shape[0]:
            tensors[name] = own[name].clone()
    try:
        load_parameters(model, tensors)
    except UserError as error:
        raise UserError(f"cannot start from {folder}: {error}") from None
