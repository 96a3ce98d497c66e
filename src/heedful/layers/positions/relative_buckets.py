"""A learned bias per head and range of distances (T5; Raffel et al., 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.layers.positions.scheme import PositionScheme, distances
from heedful.settings.position_scheme import PositionConfig, PositionSizes
from heedful.settings.relative_buckets import RelativeBucketConfig


class RelativeBucketPositions(PositionScheme):
    """A bias per head and bucket, shared by all layers of a stack; any length will do, as far keys share a bucket."""

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

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        farthest = self.max_distance
        places = distances(query_positions, key_positions).clamp(-farthest, farthest) + farthest
        biases_HX = self.biases.T[:, self.buckets_X]
        return biases_HX[:, places].movedim(0, -3)


def relative_buckets(distances_X: Tensor, num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    """The bucket of each distance: the nearest have one each, the others share by the logarithm of the distance.

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
