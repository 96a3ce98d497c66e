"""Training that has gone wrong, and what the user is told."""

from __future__ import annotations

import math
from pathlib import Path

from heedful.errors import UserError
from heedful.training.checkpoint import checkpoint_folders


def divergence(loss: float, norm: float, largest_loss: float) -> str | None:
    """What is wrong with the loss of a step, or with the norm of its gradient, if anything is."""
    if not math.isfinite(loss):
        return f"the loss is {loss}"
    if not math.isfinite(norm):
        return f"the norm of the gradient is {norm}"
    if loss > largest_loss:
        return f"the loss has grown to {loss:.1f}, far above that of a random guess"
    return None


def divergence_error(step: int, what: str, checkpoints: Path) -> UserError:
    """The error that ends a run that went wrong at a step; it names the checkpoint to go back to, if there is one."""
    kept = checkpoint_folders(checkpoints)
    return UserError(
        f"training went wrong at step {step}: {what}. "
        + (f"The last good checkpoint is {kept[-1]}" if kept else "No good checkpoint was saved before")
        + "; try a lower training.schedule.learning_rate in another folder"
    )
