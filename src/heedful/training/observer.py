"""Receives the events of a run."""

from __future__ import annotations

from typing import Any, Protocol


class Observer(Protocol):
    """Receives the events of a run."""

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        """A step was taken."""

    def validation(self, row: dict[str, Any], examples: list[dict[str, str]]) -> None:
        """The model was measured."""

    def message(self, text: str) -> None:
        """Something happened that a person should know."""
