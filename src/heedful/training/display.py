"""What a person sees of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from heedful.tasks.job import Choice
from heedful.tasks.registry import all_tasks

SECONDS_BETWEEN_LINES = 10.0
# What tasks measure in a validation, besides the loss.
SCORES = tuple(dict.fromkeys(score for task in all_tasks().values() for score in task.scores))


class RunDisplay:
    """Shows a run on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live | None = None
        self.recent: deque[dict[str, Any]] = deque(maxlen=50)
        self.last_validation: dict[str, Any] = {}
        self.started = time.monotonic()
        self.first_progress: float | None = None
        self.printed_at = 0.0
        self.stage = ""
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(None), TextColumn("{task.percentage:>3.0f} %"))
        self.bar_task: TaskID = self.bar.add_task("", total=1.0)

    def __enter__(self) -> RunDisplay:
        if self.console.is_terminal:
            self.live = Live(console=self.console, refresh_per_second=4, transient=True)
            self.live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live:
            self.live.update(Text(""))
            self.live.__exit__(None, None, None)
            self.live = None

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """The preparation of the data has progressed."""
        if self.live:
            self.bar.update(self.bar_task, description=stage, completed=done, total=total)
            self.live.update(self.bar)
        elif stage != self.stage:
            self.console.print(f"{stage} ...", highlight=False)
        self.stage = stage

    def prepared(self, messages: Sequence[str]) -> None:
        """The data is ready; the messages say what was changed or left out."""
        for message in messages:
            style = "bold yellow" if message.startswith("warning:") else ""
            self.console.print(Text(message, style), soft_wrap=True)

    def chosen(self, choices: Sequence[Choice], resumed_at: int | None) -> None:
        """Training is about to begin, or to continue."""
        table = Table(title="the choices of this run", title_justify="left")
        for column in ("what", "choice", "how it came about"):
            table.add_column(column)
        for choice in choices:
            table.add_row(choice.name, Text(choice.value), Text(choice.reason))
        self.console.print(table)
        if resumed_at is not None:
            self.console.print(f"continuing after step {resumed_at:,}", highlight=False)
        self.started = time.monotonic()

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        """A step was taken."""
        self.recent.append(row)
        if self.first_progress is None:
            self.first_progress = progress
        now = time.monotonic()
        if self.live:
            self.live.update(self._panel(row, progress))
        elif now - self.printed_at >= SECONDS_BETWEEN_LINES:
            self.printed_at = now
            self.console.print(self._line(row, progress), highlight=False, soft_wrap=True)

    def validation(self, row: dict[str, Any], examples: list[dict[str, str]]) -> None:
        """The model was measured."""
        self.last_validation = row
        self.console.print(
            f"validation at step {row['step']:,}: loss {row['loss']:.4f}{_scores(row)} ({row['seconds']:.1f} s)",
            highlight=False,
            soft_wrap=True,
        )
        for example in examples:
            for name, text in example.items():
                self.console.print(Text(f"  {name:>11}  {text}"), soft_wrap=True)

    def message(self, text: str) -> None:
        """Something happened that a person should know."""
        self.console.print(Text(text), soft_wrap=True)

    def _figures(self, row: dict[str, Any], progress: float | None) -> dict[str, str]:
        tokens = sum(each["target_tokens"] for each in self.recent)
        figures = {
            "step": f"{row['step']:,}",
            "epoch": str(row["epoch"] + 1),
            "loss": f"{sum(each['loss'] * each['target_tokens'] for each in self.recent) / tokens:.4f}",
            f"{row['unit']}/s": f"{tokens / sum(each['seconds'] for each in self.recent):,.0f}",
            "padding": f"{sum(each['padding'] for each in self.recent) / len(self.recent):.1%}",
            "learning rate": f"{row['learning_rate']:.2e}",
        }
        if self.last_validation:
            figures["validation loss"] = f"{self.last_validation['loss']:.4f}"
            figures |= {name: f"{self.last_validation[name]:.2f}" for name in self.last_validation if name in SCORES}
        if progress is not None and self.first_progress is not None and progress > self.first_progress:
            spent = time.monotonic() - self.started
            left = spent / (progress - self.first_progress) * (1 - progress)
            figures["time left"] = f"{int(left // 60)}:{int(left % 60):02d}"
        return figures

    def _line(self, row: dict[str, Any], progress: float | None) -> str:
        return "  ".join(f"{name} {value}" for name, value in self._figures(row, progress).items())

    def _panel(self, row: dict[str, Any], progress: float | None) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        for name, value in self._figures(row, progress).items():
            grid.add_row(Text(name, style="dim"), value)
        self.bar.update(self.bar_task, description="training", completed=progress or 0.0, total=1.0)
        return Group(grid, self.bar)


def _scores(row: dict[str, Any]) -> str:
    return "".join(f", {name} {row[name]:.2f}" for name in SCORES if name in row)


def display_on_stderr() -> RunDisplay:
    """A display on standard error, as the command line uses it."""
    return RunDisplay(Console(stderr=True))
