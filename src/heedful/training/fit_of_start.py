"""Settings with which the weights of the model to start from cannot fit, found without reading data or weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from heedful.config import from_dict, merge, nested, to_dict
from heedful.errors import UserError
from heedful.layers.grid_positions import GridPositions
from heedful.layers.patches import PatchEmbedding
from heedful.layers.positions import LearnedPositions
from heedful.model_folder import check_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.families import FAMILY_SETTINGS
from heedful.training.identity import flat

# Their weights are fitted to other sizes.
_FITTED = (LearnedPositions, GridPositions, PatchEmbedding)


def refuse_other_sizes(start_folder: str, asked: dict[str, Any]) -> None:
    """Raise a UserError that names the first of the model's settings that gives a weight another size.

    Each is tried alone, in a model without memory; whatever else does not fit is found when the weights are copied.
    """
    start = check_model_folder(Path(start_folder))
    own = to_dict(start.model)
    known = flat(own)
    kind, build = FAMILY_SETTINGS[start.family], FAMILIES[start.family].build_without_memory
    for name, value in flat(asked).items():
        if name in known and value is not None and known[name] != value:
            try:
                other = build(from_dict(kind, merge(own, nested(name, value))))
            except UserError:  # it makes no sense alone
                continue
            if _differs(_sizes(build(start.model)), _sizes(other)):
                size = "another" if known[name] is None else known[name]  # one that follows from others
                raise UserError(
                    f"{start_folder} has model.{name} {size}, and its weights do not fit {value}: leave "
                    f"model.{name} out, or leave --from out"
                )


def _differs(own: dict[str, tuple[int, ...]], other: dict[str, tuple[int, ...]]) -> bool:
    return any(other.get(name, size) != size for name, size in own.items())


def _sizes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """The sizes of all weights that are taken over as they are."""
    fitted = tuple(f"{name}." for name, layer in model.named_modules() if isinstance(layer, _FITTED))
    return {name: tuple(each.shape) for name, each in model.named_parameters() if not name.startswith(fitted)}
