"""What a head does, in numbers: how spread its weights are, and how far it looks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.attention.attention_map import Positions


def entropy(weights_HTS: NDArray[np.float32]) -> NDArray[np.float64]:
    """The entropy H of each head's weights in nats, a mean over queries: 0 looks at one key, log S at all S alike."""
    weights = weights_HTS.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(-1).mean(-1)


def mean_distance(weights_HTS: NDArray[np.float32], queries: Positions, keys: Positions) -> NDArray[np.float64]:
    """How far away each head H looks, a mean over queries; positions that are nowhere do not count."""
    distances_TS = np.linalg.norm(queries.places[:, None] - keys.places[None], axis=-1)
    known_TS = ~np.isnan(distances_TS)
    weights = weights_HTS * known_TS
    totals_HT = weights.sum(-1, dtype=np.float64)
    counted = totals_HT > 0
    far_HT = (weights * np.where(known_TS, distances_TS, 0.0)).sum(-1) / np.where(counted, totals_HT, 1.0)
    return far_HT.sum(-1) / np.maximum(counted.sum(-1), 1)
