"""Measures claims one after the other; what the same code has measured before is not measured again."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from heedful.claims.budgets import BUDGETS, QUICK_SECONDS
from heedful.claims.claim import Claim
from heedful.claims.results import Result, Row, TimeSpent, committed_results, kept_result, save_result
from heedful.claims.table import CLAIMS
from heedful.claims.workbench import fingerprint, workbench
from heedful.config import nearest
from heedful.errors import UserError
from heedful.machine.cores import available_cores


class ClaimObserver(Protocol):
    """Receives the events while claims are measured."""

    def begins(self, claim: Claim, number: int, total: int) -> None:
        """A claim is about to be measured."""

    def working(self, text: str) -> None:
        """A part of a measurement begins."""

    def ends(self, row: Row, reused: bool) -> None:
        """A claim has its result, an earlier one if it is reused."""


def chosen_claims(names: Sequence[str]) -> list[Claim]:
    """The claims of these names, in the order of the table; without names, all of them."""
    for name in names:
        if name not in CLAIMS:
            raise UserError(f"there is no claim {name!r}: {nearest(name, list(CLAIMS))}")
    return [claim for name, claim in CLAIMS.items() if not names or name in names]


def run_claims(claims: Sequence[Claim], quick: bool, folder: Path, observer: ClaimObserver) -> list[Row]:
    """Measure claims, and keep each result in the work folder as soon as it is known.

    On a slow or busy machine, a quick run does not start what it has no time for, if there is a committed result.
    """
    committed = committed_results() if quick else {}
    end = time.monotonic() + QUICK_SECONDS
    rows = []
    for number, claim in enumerate(claims, 1):
        observer.begins(claim, number, len(claims))
        path = folder / "results" / f"{claim.name}-{'quick' if quick else 'full'}.json"
        result, reused = kept_result(path, fingerprint(claim, quick)), True
        if result is None and quick and _too_long(claim, committed, end - time.monotonic()):
            result = committed.get(claim.name)
            row = Row(claim, "committed" if result else "absent", result)
        else:
            if result is None:
                result, reused = _measured(claim, quick, folder, observer, path), False
            row = Row(claim, "measured", result)
        rows.append(row)
        observer.ends(row, reused)
    return rows


def _too_long(claim: Claim, committed: Mapping[str, Result], left: float) -> bool:
    """Whether a quick run skips a claim, either always or because the `left` seconds are not enough."""
    seconds = BUDGETS[claim.name][0]
    return seconds is None or (seconds > left and claim.name in committed)


def _measured(claim: Claim, quick: bool, folder: Path, observer: ClaimObserver, path: Path) -> Result:
    import torch

    from heedful.claims.learning.clock import seconds_now

    def tell(text: str) -> None:
        spent.keep()
        observer.working(text)

    with _all_cores():
        spent = TimeSpent(path.with_suffix(".seconds"), fingerprint(claim, quick), seconds_now)
        measure = importlib.import_module(claim.module).measure
        evidence = measure(workbench(claim, folder, quick, tell))
        seconds = round(spent.seconds, 1)
    result = Result(spent.made_by, quick, seconds, available_cores(), str(torch.__version__), evidence)
    save_result(path, result)
    spent.forget()
    return result


@contextmanager
def _all_cores() -> Iterator[None]:
    """Let torch use all cores, treat tiny numbers as zero, and restore its threads and random state afterwards."""
    import torch

    from heedful.machine.devices import flushed_denormals

    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(available_cores())
    try:
        with flushed_denormals():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
