"""Model sizes and their training recipes, one function each; a preset's name is its function's name."""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]


def _translation(width: int, layers: int, heads: int, inner: int, norm: str, dropout: float) -> Settings:
    stack = {
        "num_layers": layers,
        "norm": norm,
        "dropout": dropout,
        "attention": {"num_heads": heads},
        "feed_forward": {"inner_width": inner},
    }
    return {"width": width, "encoder": stack, "decoder": stack}


def _paper_recipe(average: int) -> Settings:
    return {
        "schedule": {"kind": "inverse_square_root", "warmup_steps": 4000},
        "optimizer": {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.0, "clip_norm": 0.0},
        "batches": {"tokens_per_step": 50_000},
        "ema_decay": 0.0,
        "average_checkpoints": average,
        # The checkpoints that are averaged are those of validations, so that these must come often.
        "saving": {"validations": 10 * average},
    }


def budget_recipe(width: int) -> Settings:
    """Warm-up, decay to zero at the end of the run, and a moving average; wider models take smaller rates."""
    rate = 2e-3 * 128 / width
    return {
        "schedule": {"kind": "decay", "learning_rate": round(rate, 6)},
        "ema_decay": 0.999,
        "average_checkpoints": 0,
    }


def translation_tiny() -> Settings:
    """About 2 million parameters: the demo, small corpora, a laptop."""
    return {
        "model": _translation(128, 4, 4, 256, "pre", 0.2),
        "training": budget_recipe(128),
    }


def translation_small() -> Settings:
    """About 8 million parameters: some hundred thousand sentence pairs on a CPU."""
    return {
        "model": _translation(256, 4, 4, 1024, "pre", 0.2),
        "training": budget_recipe(256),
    }


def translation_base() -> Settings:
    """The paper's base model and recipe (Table 3, 5.3)."""
    return {"model": _translation(512, 6, 8, 2048, "post", 0.1), "training": _paper_recipe(5)}


def translation_big() -> Settings:
    """The paper's big model and recipe (Table 3; dropout 0.3 as for English-German)."""
    return {"model": _translation(1024, 6, 16, 4096, "post", 0.3), "training": _paper_recipe(20)}


PRESETS = {
    preset.__name__: preset for preset in (translation_tiny, translation_small, translation_base, translation_big)
}
