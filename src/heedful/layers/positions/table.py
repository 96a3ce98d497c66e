"""The table of position schemes, and how settings become a scheme."""

from __future__ import annotations

from heedful.layers.positions.alibi import AlibiPositions
from heedful.layers.positions.learned import LearnedPositions
from heedful.layers.positions.relative_buckets import RelativeBucketPositions
from heedful.layers.positions.rotary import RotaryPositions
from heedful.layers.positions.scheme import PositionScheme
from heedful.layers.positions.sinusoidal import SinusoidalPositions, SinusoidHalvesPositions
from heedful.settings.position_scheme import PositionConfig, PositionSizes
from heedful.settings.positions import config_of, name_of

# By the names of `POSITION_SCHEMES` in `settings/positions.py`.
SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoid_halves": SinusoidHalvesPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "alibi": AlibiPositions,
    "relative_buckets": RelativeBucketPositions,
    "none": PositionScheme,
}


def scheme_of(positions: PositionConfig | str) -> type[PositionScheme]:
    """The class of a scheme."""
    return SCHEMES[name_of(positions)]


def make_positions(positions: PositionConfig | str, sizes: PositionSizes) -> PositionScheme:
    """The scheme for a stack of some sizes."""
    return scheme_of(positions)(sizes, config_of(positions))
