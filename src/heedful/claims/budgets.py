"""How long each claim may take on two cores, in seconds: quick and full; a quick run skips those with None."""

from __future__ import annotations

QUICK_SECONDS, FULL_SECONDS = 600, 9000

BUDGETS: dict[str, tuple[int | None, int]] = {
    "variance": (20, 60),
    "saturation": (20, 300),
    "scorings": (None, 700),
    "permutation": (20, 120),
    "position-schemes": (20, 500),
    "resolution": (20, 200),
    "long-range": (20, 1100),
    "complexity": (20, 120),
    "parallel-training": (40, 300),
    "heads": (None, 700),
    "sizes": (None, 1200),
    "head-roles": (20, 200),
    "masking": (20, 200),
    "depth": (None, 500),
    "feed-forward": (40, 400),
    "embeddings": (20, 300),
    "local-attention": (20, 500),
    "batches": (20, 300),
    "families": (20, 300),
    "objectives": (None, 500),
    "tokens": (50, 500),
}
