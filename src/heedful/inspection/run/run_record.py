"""What a training run leaves in its folder, read during the run or after its end."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.config import read_json
from heedful.errors import UserError
from heedful.files import checkpoint_folders

Row = dict[str, Any]

# Numbers that a row must have, by its kind.
NUMBERS = {
    "train": ("step", "loss", "learning_rate", "gradient_norm", "target_tokens", "padding", "seconds"),
    "validation": ("step", "loss", "seconds"),
    "failure": ("step",),
    "step": ("step", "seconds"),
}


@dataclass(frozen=True)
class RunRecord:
    """A run: its choices, a row for each step and each validation, what stopped it, and what was done to its data.

    For a run in several processes, `rank_steps` has the steps that each of them logged, by rank.
    """

    name: str
    family: str
    preset: str
    clip_norm: float | None
    choices: list[Row]
    starts_from_model: bool
    steps: list[Row]
    validations: list[Row]
    failure: Row | None
    finished: bool
    data_report: list[Row]
    rank_steps: dict[int, list[Row]] = field(default_factory=dict)

    @property
    def best(self) -> Row | None:
        """The validation whose weights the model folder holds: with the fewest wrong answers, if they are counted.

        Among equals it is the first with the lowest loss, as `Validation.rank` has it.
        """
        measured = [row for row in self.validations if math.isfinite(row["loss"])]
        return min(measured, key=lambda row: (wrong_answers(row) or 0.0, row["loss"]), default=None)

    @property
    def best_in_words(self) -> str:
        """How the weights were chosen, and their measured results."""
        best = self.best
        if best is None:
            return "no validation gave a number"
        if wrong_answers(best) is None:
            return f"the weights of step {best['step']:,}, by the lowest validation loss: {best['loss']:.4f}"
        return (
            f"the weights of step {best['step']:,}, by the fewest wrong answers: {wrong_answers(best):.2%}, "
            f"validation loss {best['loss']:.4f}"
        )


def wrong_answers(row: Row) -> float | None:
    """The share of wrong answers in a validation, where weights are chosen by them."""
    if "wrong" in row:
        found: float | None = row["wrong"]
        return found
    # Runs of older versions: among tasks with an accuracy, those with labels also have an F1 score.
    return 1.0 - row["accuracy"] if "macro F1" in row else None


def read_run(folder: Path) -> RunRecord:
    """Read the folder of a run."""
    run = folder / "run"
    if not (run / "config.json").is_file():
        raise UserError(f"{folder} holds no training run: there is no {run / 'config.json'}")
    content = read_json(run / "config.json")
    try:
        resolved, choices = content["saved"]["resolved"], content["saved"]["choices"]
        family, preset, training = (resolved[name] for name in ("family", "preset", "training"))
        clip_norm, data = training["optimizer"]["clip_norm"], content["requested"]["data"]
    except (KeyError, TypeError):
        raise UserError(f"{run / 'config.json'} is broken: it does not hold the settings of a run") from None
    rows = _metrics(run / "metrics.jsonl")
    return RunRecord(
        name=folder.resolve().name,
        family=family,
        preset=preset,
        clip_norm=clip_norm,
        choices=choices,
        starts_from_model=bool(data.get("from_model") or data.get("start_from")),
        steps=_with_times([row for row in rows if row["kind"] in ("train", "validation")]),
        validations=[row for row in rows if row["kind"] == "validation"],
        failure=next((row for row in rows if row["kind"] == "failure"), None),
        finished=_finished(run / "checkpoints"),
        data_report=_summarised(run / "data-report.jsonl"),
        rank_steps=_rank_steps(run / "logs"),
    )


def _rank_steps(folder: Path) -> dict[int, list[Row]]:
    """The steps in the log of each process."""
    found = {}
    for file in sorted(folder.glob("rank-*.log")):
        rank = file.stem.removeprefix("rank-")
        if rank.isdecimal():
            found[int(rank)] = [row for row in _metrics(file) if row["kind"] == "step"]
    return found


def _metrics(file: Path) -> list[Row]:
    return [_parsed(file, number, line, _row) for number, line in enumerate(_lines(file), 1)]


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file that may be long and still growing, without an incomplete last line."""
    if not file.exists():
        return
    try:
        with file.open(encoding="utf-8") as lines:
            yield from (line for line in lines if line.endswith("\n"))
    except UnicodeDecodeError:
        raise UserError(f"{file} is broken: it is not valid UTF-8") from None


def _parsed(file: Path, number: int, line: str, parse: Callable[[Any], Row]) -> Row:
    try:
        return parse(json.loads(line))
    except ValueError:
        raise UserError(f"{file} is broken: line {number} is not valid JSON") from None
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{file} is broken: line {number} is not as heedful writes it") from None


def _row(row: Row) -> Row:
    """A row of the metrics, if it is one."""
    for name in NUMBERS.get(row["kind"], ()):
        if not isinstance(row[name], int | float):
            raise TypeError
    return row


def _with_times(rows: list[Row]) -> list[Row]:
    """The rows of steps, with the seconds since the start, also where an older run has not recorded them."""
    steps, elapsed = [], 0.0
    for row in rows:
        elapsed = row.get("elapsed", elapsed + row["seconds"])
        if row["kind"] == "train":
            steps.append({**row, "elapsed": elapsed})
    return steps


def _finished(checkpoints: Path) -> bool:
    found = checkpoint_folders(checkpoints)
    try:
        return bool(found) and bool(read_json(found[-1] / "state.json").get("finished"))
    except UserError:  # the run is still going on, and has just replaced it
        return False


def _summarised(file: Path) -> list[Row]:
    """How often each rule was applied to the data, and where it was first applied."""
    rules: dict[tuple[str, str], Row] = {}
    for number, line in enumerate(_lines(file), 1):
        entry = _parsed(file, number, line, _rule)
        if entry:
            rules.setdefault((entry["rule"], entry["action"]), entry)["count"] += 1
    return list(rules.values())


def _rule(entry: Row) -> Row:
    """The rule that an entry of the data report names, and where; nothing for other kinds of entry."""
    if "rule" not in entry:
        return {}
    first = {"files": entry.get("files") or [entry["file"]], "line": entry.get("line")}
    return {"rule": entry["rule"], "action": entry["action"], "count": 0, "first": first}
