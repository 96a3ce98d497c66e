"""The file that records a run, one JSON object per line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.files import flush_to_disk, write_file
from heedful.storage import writing
from heedful.tasks.task import Validation
from heedful.training.run_state import MetricsMark


class MetricsFile:
    """Rows of training steps and validations, in order; of several processes, only one writes (`writes`)."""

    def __init__(self, path: Path, writes: bool = True) -> None:
        self.path, self.writes = path, writes
        self._size, self._digest = 0, hashlib.blake2b(digest_size=16)

    def write(self, kind: str, row: dict[str, Any]) -> None:
        """Add a row."""
        if not self.writes:
            return
        line = (json.dumps({"kind": kind, **row}) + "\n").encode("utf-8")
        with writing(self.path), self.path.open("ab") as file:
            file.write(line)
        self._note(line)

    def mark(self) -> MetricsMark:
        """How far the file has come; everything up to there is on disk."""
        if self.path.exists():
            with writing(self.path):
                flush_to_disk(self.path)
        return MetricsMark(self._size, self._digest.hexdigest())

    def agrees(self, step: int, mark: MetricsMark | None) -> bool:
        """Whether the file holds all that it held when a checkpoint was saved, as far as that can be told."""
        return self._rows_until(step, mark)[1] == 0

    def truncate(self, step: int, mark: MetricsMark | None = None) -> int:
        """Drop the rows after a checkpoint: they record work that was lost, and will be done again.

        Returns how many lines could not be read, and were left out.
        """
        content, unreadable = self._rows_until(step, mark)
        self._size, self._digest = 0, hashlib.blake2b(digest_size=16)
        self._note(content)
        if self.path.exists() and self._read() != content:
            write_file(self.path, content.decode("utf-8"))
        return unreadable

    def _rows_until(self, step: int, mark: MetricsMark | None) -> tuple[bytes, int]:
        """The rows up to a checkpoint, and at least how many lines are missing from them."""
        content = self._read()
        if mark is not None:
            kept = content[: mark.bytes]
            if MetricsMark(len(kept), hashlib.blake2b(kept, digest_size=16).hexdigest()) == mark:
                return kept, 0
        lines = content[: content.rfind(b"\n") + 1].split(b"\n")[:-1]
        steps = [_step_of(line) for line in lines]
        # Unreadable lines after the last row of the checkpoint's step are from work that was lost.
        last = max((place for place, found in enumerate(steps) if found is not None and found <= step), default=-1)
        rows = [line + b"\n" for line, found in zip(lines, steps, strict=True) if found is not None and found <= step]
        missing = steps[: last + 1].count(None)
        if mark is not None or (step and not rows):
            missing = max(1, missing)
        return b"".join(rows), missing

    def _read(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def _note(self, content: bytes) -> None:
        self._size += len(content)
        self._digest.update(content)


def _step_of(line: bytes) -> int | None:
    """The step of a row, or None if the line is not a row."""
    try:
        step = json.loads(line.decode("utf-8"))["step"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return step if type(step) is int else None


def validation_row(
    step: int, result: Validation, entropy: dict[str, list[float]], seconds: float, elapsed: float
) -> dict[str, Any]:
    """What a run records about a validation."""
    return {
        "step": step,
        "loss": result.loss,
        "wrong": result.wrong,
        **result.scores,
        "input_gain": result.input_gain,
        "answers": result.answers and asdict(result.answers),
        "attention_entropy": entropy,
        "examples": result.examples,
        "seconds": seconds,
        "elapsed": elapsed,
    }
