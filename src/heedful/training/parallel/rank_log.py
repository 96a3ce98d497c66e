"""A log file for every process of a run, besides what the leading one shows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.storage import writing
from heedful.tasks.job import Choice
from heedful.training.parallel.world import World


class RankLog:
    """Writes the events of a run, as one process sees them, one JSON object per line; `step` rows have its times."""

    def __init__(self, path: Path, world: World) -> None:
        self.path, self.world = path, world
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)

    def _write(self, kind: str, **content: Any) -> None:
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S"), "kind": kind, **content})
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """The preparation of the data has progressed, which is not logged."""

    def prepared(self, messages: Sequence[str]) -> None:
        """The data is ready."""
        self._write("prepared", messages=list(messages))

    def chosen(self, choices: Sequence[Choice], resumed_at: int | None) -> None:
        """Training is about to begin, or to continue."""
        self._write("start", resumed_at=resumed_at, process=os.getpid())

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        """A step was taken."""
        self._write(
            "step", step=row["step"], loss=row["loss"], seconds=row["seconds"], waited=round(self.world.waited, 6)
        )

    def validation(self, row: dict[str, Any], examples: list[dict[str, str]]) -> None:
        """The model was measured."""
        self._write("validation", step=row["step"], loss=row["loss"], seconds=row["seconds"])

    def message(self, text: str) -> None:
        """Something happened that a person should know."""
        self._write("message", text=text)


class Both:
    """Passes all events on to several observers."""

    def __init__(self, *observers: Any) -> None:
        self.observers = observers

    def __getattr__(self, name: str) -> Any:
        def tell(*arguments: Any) -> None:
            for each in self.observers:
                getattr(each, name)(*arguments)

        return tell
