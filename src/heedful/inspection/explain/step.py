"""A step of a computation, as the page describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.inspection.explain.code_lines import CodeLine, code_line


@dataclass(frozen=True)
class Step:
    """A step: its title, its formula, one sentence about it, and where its code is."""

    title: str
    formula: str
    about: str
    place: Any = None
    fragment: str = ""

    @property
    def code(self) -> CodeLine | None:
        """The line that computes it; steps of the model as a whole have none."""
        return None if self.place is None else code_line(self.place, self.fragment)
