"""What a user asks for when asking for a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heedful.tasks.job import Job


@dataclass(frozen=True)
class RunConfig:
    """A run as asked for: `settings` holds the tables "model" and "training", over those of the preset.

    `data` says what is to be learned, and from which files. Without a preset, one of the family is chosen.
    With `extend`, a run that has finished goes on to the later end that `settings` name.
    """

    out: str
    data: Job
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    family: str | None = None
    extend: bool = False
