"""The file that records a run, one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.files import whole_lines, write_file


class MetricsFile:
    """Rows of training steps and validations, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, kind: str, row: dict[str, Any]) -> None:
        """Add a row."""
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"kind": kind, **row}) + "\n")

    def truncate(self, step: int) -> None:
        """Drop the rows after a step: they are of work that was lost, and will be done again."""
        if self.path.exists():
            kept = [line for line in whole_lines(self.path) if json.loads(line)["step"] <= step]
            write_file(self.path, "".join(line + "\n" for line in kept))
