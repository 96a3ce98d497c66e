"""How a model learns where a token stands: one class per scheme, all behind the same three hooks.

One rule holds for using a model at a length other than that of its training (`resize`): sinusoidal tables extend,
learned tables interpolate, rotary angles rescale; biases by distance have no limit.
"""

from heedful.layers.positions.alibi import AlibiPositions
from heedful.layers.positions.learned import LearnedPositions
from heedful.layers.positions.relative_buckets import RelativeBucketPositions
from heedful.layers.positions.rotary import RotaryPositions
from heedful.layers.positions.scheme import PositionScheme
from heedful.layers.positions.sinusoidal import SinusoidalPositions, SinusoidHalvesPositions, sinusoid_table
from heedful.layers.positions.table import SCHEMES, make_positions, scheme_of

__all__ = [
    "SCHEMES",
    "AlibiPositions",
    "LearnedPositions",
    "PositionScheme",
    "RelativeBucketPositions",
    "RotaryPositions",
    "SinusoidHalvesPositions",
    "SinusoidalPositions",
    "make_positions",
    "scheme_of",
    "sinusoid_table",
]
