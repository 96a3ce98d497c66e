"""What tests of the training loop share: batches of rows for a linear layer, and what a run has left in its folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """A batch of which every row is one target."""

    values: Tensor

    @property
    def num_targets(self) -> int:
        return len(self.values)

    num_real = num_tokens = num_targets

    def halves(self) -> list["Rows"]:
        return [Rows(part) for part in self.values.chunk(2)]


def rows_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The rows of a kind in the metrics of a run."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints of a run."""
    return sorted(int(each.name.removeprefix("step-")) for each in (folder / "checkpoints").glob("step-*"))
