"""What a user asks for in a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heedful.tasks.job import Job


@dataclass(frozen=True)
class RunConfig:
    """A run as you ask for it: `settings` holds the tables "model" and "training", which override the preset.

    `data` says what to learn, and from which files. Without a preset, one of the family is chosen. With `extend`, a run
    that has finished continues to the later end that `settings` give.
    """

    out: str
    data: Job
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    family: str | None = None
    extend: bool = False
