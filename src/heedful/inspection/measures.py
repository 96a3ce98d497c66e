"""What a head does, in numbers: how spread its weights are, and how far it looks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.attention_map import Positions


def entropy(weights_HQK: NDArray[np.float32]) -> NDArray[np.float64]:
    """The entropy H of each head's weights in nats, a mean over queries: 0 looks at one key, log K at all alike."""
    weights = weights_HQK.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(-1).mean(-1)


def mean_distance(weights_HQK: NDArray[np.float32], queries: Positions, keys: Positions) -> NDArray[np.float64]:
    """How far away each head H looks, a mean over queries; positions that are nowhere do not count."""
    distances_QK = np.linalg.norm(queries.places[:, None] - keys.places[None], axis=-1)
    known_QK = ~np.isnan(distances_QK)
    weights = weights_HQK * known_QK
    totals_HQ = weights.sum(-1, dtype=np.float64)
    counted = totals_HQ > 0
    far_HQ = (weights * np.where(known_QK, distances_QK, 0.0)).sum(-1) / np.where(counted, totals_HQ, 1.0)
    return far_HQ.sum(-1) / np.maximum(counted.sum(-1), 1)
