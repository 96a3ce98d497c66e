"""Results of claims in files: one for each claim in the work folder, and a whole run as claims.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from heedful.claims.claim import PACKAGE, Claim
from heedful.claims.evidence import Evidence
from heedful.config import from_dict, read_json
from heedful.errors import UserError
from heedful.files import write_file

FORMAT = 1
# The results of a full run, which come with the source code.
COMMITTED = PACKAGE.parents[1] / "docs" / "claims" / "claims.json"
Origin = Literal["measured", "committed", "absent"]


@dataclass(frozen=True)
class Result:
    """The outcome of a claim's measurement, and how it was made; `made_by` is a hash of the code behind it."""

    made_by: str
    quick: bool
    seconds: float
    cores: int
    torch: str
    evidence: Evidence


@dataclass(frozen=True)
class Row:
    """A claim, and its result: measured now, taken from the committed run, or absent."""

    claim: Claim
    origin: Origin
    result: Result | None


def save_result(path: Path, result: Result) -> None:
    """Keep a claim's result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(asdict(result), allow_nan=False, indent=1))


def kept_result(path: Path, made_by: str) -> Result | None:
    """A kept result, if the code behind it is still the same."""
    if not path.is_file():
        return None
    try:
        found = from_dict(Result, read_json(path))
    except UserError:  # from another version, or damaged: measured again
        return None
    return found if found.made_by == made_by else None


class TimeSpent:
    """The seconds that a measurement takes; they are kept on the way, so that those of a stopped run count too.

    What was stopped in the middle is done again, so only what had been finished counts.
    """

    def __init__(self, path: Path, made_by: str, clock: Callable[[], float]) -> None:
        self.path, self.made_by, self.clock, self.before = path, made_by, clock, 0.0
        if path.is_file():
            kept = json.loads(path.read_text(encoding="utf-8"))
            self.before = kept["seconds"] if kept["made_by"] == made_by else 0.0
        self.began = clock()

    @property
    def seconds(self) -> float:
        """Those of this run, and those of stopped runs of the same code before it."""
        return self.before + self.clock() - self.began

    def keep(self) -> None:
        """Write them down: a part begins, so those before it are finished."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.path, json.dumps({"made_by": self.made_by, "seconds": self.seconds}))

    def forget(self) -> None:
        """The measurement has a result, which holds its seconds."""
        self.path.unlink(missing_ok=True)


def seconds_spent(rows: list[Row]) -> float:
    """How long measuring these took, also if a stopped run was continued later."""
    return sum(row.result.seconds for row in rows if row.result and row.origin == "measured")


def run_document(rows: list[Row], quick: bool, command: str) -> dict[str, Any]:
    """A whole run, as it is in claims.json."""
    claims = [
        {
            **asdict(row.claim),
            "command": row.claim.command,
            "origin": row.origin,
            "result": None if row.result is None else asdict(row.result),
        }
        for row in rows
    ]
    seconds = round(seconds_spent(rows), 1)
    return {"format": FORMAT, "command": command, "quick": quick, "seconds": seconds, "claims": claims}


def committed_results(path: Path = COMMITTED) -> dict[str, Result]:
    """The results of the full run that comes with the source code; none where there is no such file."""
    if not path.is_file():
        return {}
    document = read_json(path)
    if document.get("format") != FORMAT:
        raise UserError(f"{path} has the format {document.get('format')!r}, and this version reads {FORMAT}")
    found = {each["name"]: each["result"] for each in document["claims"] if each["origin"] == "measured"}
    return {name: from_dict(Result, result) for name, result in found.items() if not result["quick"]}
