"""How tokens enter a model."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.config import require


@dataclass(frozen=True)
class EmbeddingConfig:
    """How tokens enter a model: scaled as in the paper; with `segments` kinds of segment and a norm as in BERT."""

    scaled: bool = True
    segments: int = 0
    norm: bool = False
    norm_epsilon: float = 1e-12

    def __post_init__(self) -> None:
        require(self.segments, "segments", 0)
        require(self.norm_epsilon, "norm_epsilon", 0)
