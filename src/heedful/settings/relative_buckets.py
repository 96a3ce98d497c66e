"""The settings of positions by ranges of distances."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.config import require
from heedful.errors import UserError
from heedful.settings.position_scheme import PositionConfig, PositionSizes, SchemeTraits


@dataclass(frozen=True)
class RelativeBucketConfig(PositionConfig):
    """How many ranges of distances there are, and the distance from which all are in the last one."""

    scheme: str = "relative_buckets"
    num_buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        require(self.num_buckets, "positions.num_buckets", 4, 2**16)
        if self.num_buckets % 2:
            raise UserError(f"positions.num_buckets is {self.num_buckets}, but must be even: half are for each side")
        require(self.max_distance, "positions.max_distance", self.num_buckets, 2**20)


def _num_parameters(sizes: PositionSizes, config: RelativeBucketConfig) -> int:
    return config.num_buckets * sizes.num_heads


RELATIVE_BUCKETS = SchemeTraits(RelativeBucketConfig, adds_bias=True, num_parameters=_num_parameters)
