"""The table of position schemes, and the way from settings to a scheme."""

from __future__ import annotations

from typing import Annotated, Any

from heedful.config import from_dict, nearest, shown
from heedful.errors import UserError
from heedful.layers.positions.alibi import AlibiPositions
from heedful.layers.positions.learned import LearnedPositions
from heedful.layers.positions.relative_buckets import RelativeBucketPositions
from heedful.layers.positions.rotary import RotaryPositions
from heedful.layers.positions.scheme import PositionConfig, PositionScheme, PositionSizes
from heedful.layers.positions.sinusoidal import SinusoidalPositions, SinusoidHalvesPositions

SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoid_halves": SinusoidHalvesPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "alibi": AlibiPositions,
    "relative_buckets": RelativeBucketPositions,
    "none": PositionScheme,
}


def read_positions(value: Any, where: str) -> PositionConfig | str:
    """The setting from plain data: a scheme's name, or a table of its settings with its name as `scheme`."""
    if isinstance(value, dict):
        if "scheme" not in value:
            raise UserError(f"setting {where + '.scheme'!r} is missing: choose one of {', '.join(SCHEMES)}")
        name = _known(value["scheme"], f"{where}.scheme")
        return from_dict(SCHEMES[name].config_class, value, where)
    return _known(value, where)


# What a model's settings say of positions: a scheme's name stands for that scheme with its usual settings.
Positions = Annotated[PositionConfig | str, read_positions]


def scheme_of(positions: PositionConfig | str) -> type[PositionScheme]:
    """The class of a scheme."""
    return SCHEMES[_known(positions if isinstance(positions, str) else positions.scheme, "positions")]


def config_of(positions: PositionConfig | str) -> PositionConfig:
    """All settings of a scheme."""
    expected = scheme_of(positions).config_class
    if isinstance(positions, str):
        return from_dict(expected, {"scheme": positions})
    if not isinstance(positions, expected):
        raise UserError(f"{positions} positions take their settings from a {expected.__name__}, not {positions!r}")
    return positions


def make_positions(positions: PositionConfig | str, sizes: PositionSizes) -> PositionScheme:
    """The scheme for a stack of some sizes."""
    return scheme_of(positions)(sizes, config_of(positions))


def _known(name: Any, where: str) -> str:
    if not isinstance(name, str) or name not in SCHEMES:
        raise UserError(f"setting {where!r} is {shown(name)}: {nearest(name, list(SCHEMES))}")
    return name
