"""What presets share: how a model of some width is trained."""

from __future__ import annotations

from heedful.presets.preset import Settings


def paper_recipe(average: int) -> Settings:
    """The recipe of the paper (5.3, 5.4, 6.1), with the mean of this many checkpoints."""
    return {
        "schedule": {"kind": "inverse_square_root", "warmup_steps": 4000},
        "optimizer": {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.0, "clip_norm": 0.0},
        "batches": {"tokens_per_step": 50_000},
        "ema_decay": 0.0,
        "average_checkpoints": average,
        # The averaged checkpoints are those of validations, so these must come often.
        "saving": {"validations": 10 * average},
    }


def budget_recipe(width: int) -> Settings:
    """Warm-up, decay to zero at the end of the run, and a moving average; wider models use smaller rates."""
    rate = 2e-3 * 128 / width
    return {
        "schedule": {"kind": "decay", "learning_rate": round(rate, 6)},
        "ema_decay": 0.999,
        "average_checkpoints": 0,
    }
