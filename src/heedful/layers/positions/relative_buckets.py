"""A learned bias per head and range of distances (T5; Raffel et al., 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.config import require
from heedful.errors import UserError
from heedful.layers.positions.scheme import PositionConfig, PositionScheme, PositionSizes, distances


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


class RelativeBucketPositions(PositionScheme):
    """A bias per head and bucket, shared by all layers of a stack; any length is fine, as far keys share a bucket."""

    config_class = RelativeBucketConfig
    buckets_X: Tensor

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__(sizes, config)
        config = config or RelativeBucketConfig()
        assert isinstance(config, RelativeBucketConfig)
        self.max_distance = config.max_distance
        self.biases = nn.Parameter(torch.randn(config.num_buckets, sizes.num_heads) * 0.02)
        far = torch.arange(-config.max_distance, config.max_distance + 1)
        buckets_X = relative_buckets(far, config.num_buckets, config.max_distance, causal=sizes.causal)
        self.register_buffer("buckets_X", buckets_X, persistent=False)

    @classmethod
    def num_parameters(cls, sizes: PositionSizes, config: PositionConfig) -> int:
        assert isinstance(config, RelativeBucketConfig)
        return config.num_buckets * sizes.num_heads

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        farthest = self.max_distance
        places = distances(query_positions, key_positions).clamp(-farthest, farthest) + farthest
        biases_HX = self.biases.T[:, self.buckets_X]
        return biases_HX[:, places].movedim(0, -3)


def relative_buckets(distances_X: Tensor, num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    """The bucket of each distance: the nearest have one each, the others share, by the logarithm of the distance.

    In encoders, half of the buckets are for keys after the query.
    """
    if causal:
        first = torch.zeros_like(distances_X)
        away_X = (-distances_X).clamp(min=0)
    else:
        num_buckets //= 2
        first = (distances_X > 0) * num_buckets
        away_X = distances_X.abs()
    exact = num_buckets // 2
    share = torch.log(away_X.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    shared = (exact + (share * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return first + torch.where(away_X < exact, away_X, shared)
