"""What classifiers of texts and of images answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Classification:
    """The likeliest label, its probability, and all labels with theirs, the likeliest first."""

    label: str = ""
    probability: float = 0.0
    ranking: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        return f"Classification({self.label!r}, probability={self.probability:.4f}, of {len(self.ranking)} labels)"


def label_document(result: Classification) -> dict[str, Any]:
    """A classification as clients of the server get it."""
    return {"label": result.label or None, "probabilities": dict(result.ranking)}
