"""A step of a computation, as the page tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.inspection.explain.code_lines import CodeLine, code_line


@dataclass(frozen=True)
class Step:
    """A step: its title, its formula, one sentence on it, and where the code of it stands."""

    title: str
    formula: str
    about: str
    place: Any = None
    fragment: str = ""

    @property
    def code(self) -> CodeLine | None:
        """The line that computes it; what belongs to a whole model has none of the layers'."""
        return None if self.place is None else code_line(self.place, self.fragment)
