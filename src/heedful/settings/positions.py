"""The table of position schemes by name, and how plain data becomes their settings."""

from __future__ import annotations

from typing import Annotated, Any

from heedful.config import from_dict, nearest, shown
from heedful.errors import UserError
from heedful.settings.position_scheme import PositionConfig, SchemeTraits
from heedful.settings.relative_buckets import RELATIVE_BUCKETS
from heedful.settings.rotary import ROTARY

SINUSOIDAL = SchemeTraits(computes_table=True)
LEARNED = SchemeTraits(extends=False, num_parameters=lambda sizes, config: sizes.length * sizes.width)

# What builds each scheme is in the table of the same names in `layers/positions/table.py`.
POSITION_SCHEMES: dict[str, SchemeTraits] = {
    "sinusoidal": SINUSOIDAL,
    "sinusoid_halves": SINUSOIDAL,
    "learned": LEARNED,
    "rotary": ROTARY,
    "alibi": SchemeTraits(adds_bias=True),
    "relative_buckets": RELATIVE_BUCKETS,
    "none": SchemeTraits(),
}


def read_positions(value: Any, where: str) -> PositionConfig | str:
    """The setting from plain data: a scheme's name, or a table of its settings with its name as `scheme`."""
    if isinstance(value, dict):
        if "scheme" not in value:
            raise UserError(f"setting {where + '.scheme'!r} is missing: choose one of {', '.join(POSITION_SCHEMES)}")
        name = _known(value["scheme"], f"{where}.scheme")
        return from_dict(POSITION_SCHEMES[name].config_class, value, where)
    return _known(value, where)


# What a model's settings say about positions: a scheme's name stands for that scheme with its usual settings.
Positions = Annotated[PositionConfig | str, read_positions]


def name_of(positions: PositionConfig | str) -> str:
    """The name of a scheme, which must exist."""
    return _known(positions.scheme if isinstance(positions, PositionConfig) else positions, "positions")


def traits_of(positions: PositionConfig | str) -> SchemeTraits:
    """What is known about a scheme without building it."""
    return POSITION_SCHEMES[name_of(positions)]


def config_of(positions: PositionConfig | str) -> PositionConfig:
    """All settings of a scheme."""
    expected = traits_of(positions).config_class
    if isinstance(positions, str):
        return from_dict(expected, {"scheme": positions})
    if not isinstance(positions, expected):
        raise UserError(f"{positions} positions take their settings from a {expected.__name__}, not {positions!r}")
    return positions


def _known(name: Any, where: str) -> str:
    if not isinstance(name, str) or name not in POSITION_SCHEMES:
        raise UserError(f"setting {where!r} is {shown(name)}: {nearest(name, list(POSITION_SCHEMES))}")
    return name
