"""What is shown while claims are measured: a live line on a terminal, and a line for each verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from heedful.claims.budgets import BUDGETS
from heedful.claims.claim import Claim
from heedful.claims.results import Row

STYLES = {"holds": "green", "holds in part": "yellow", "does not hold at this size": "red"}


class ClaimDisplay:
    """Shows the progress on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status: Status | None = Status("", console=console) if console.is_terminal else None
        self.head = ""

    def __enter__(self) -> ClaimDisplay:
        if self.status:
            self.status.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.status:
            self.status.stop()

    def begins(self, claim: Claim, number: int, total: int) -> None:
        """A claim is about to be measured."""
        self.head = f"{number} of {total}: {claim.name}"
        if self.status:
            self.status.update(self.head)

    def working(self, text: str) -> None:
        """A part of a measurement begins."""
        if self.status:
            self.status.update(f"{self.head}: {text}")
        else:
            self.console.print(f"  {self.head}: {text} ...", highlight=False, soft_wrap=True)

    def ends(self, row: Row, reused: bool) -> None:
        """A claim has its result."""
        if row.result is None:
            line = Text(f"{row.claim.name:18} no result here: about {BUDGETS[row.claim.name][1] // 60} minutes by ")
            line += Text(f"`{row.claim.command}`")
        else:
            verdict = row.result.evidence.verdict
            how = "committed" if row.origin == "committed" else "measured before" if reused else ""
            how = how or f"{row.result.seconds:.0f} s"
            line = Text(f"{row.claim.name:18} ") + Text(verdict, STYLES.get(verdict, "")) + Text(f" ({how})")
        self.console.print(line, soft_wrap=True)
