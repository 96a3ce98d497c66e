"""A plan as text."""

from __future__ import annotations

import os
from collections.abc import Collection

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.planning.layouts import AXES
from heedful.planning.live_bytes import KINDS
from heedful.planning.plan import Plan
from heedful.planning.quantities import count, shown
from heedful.planning.ranking import PlannedLayout

# Columns that are left out where there is little room, in this order.
FIRST_TO_GO = ("steps", "tokens/step", "sequences", "s/step")
# Wider than any table.
WIDE = 400


def print_plan(plan: Plan) -> None:
    """Print a plan: what is planned, the layouts, and what was assumed."""
    console = Console(soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(soft_wrap=True, width=WIDE)  # a file has room for everything
    flops = plan.flops
    rows = {
        "model": f"{plan.subject.name}, {plan.subject.model.summary()}",
        "parameters": f"{plan.parameters:,} ({count(plan.parameters)})",
        "FLOPs per token": f"{shown(flops.forward)} forward, {shown(flops.backward)} backward, "
        f"{shown(flops.recomputed)} more where blocks are recomputed",
        "FLOPs in all": f"{flops.total(False) * plan.tokens:.3g} for {count(plan.tokens)} tokens",
        "GPUs": f"{plan.gpus:,} with {shown(plan.hardware.memory, 'B')} each; {plan.fitting:,} layouts fit",
    }
    summary = Table(show_header=False)
    for name, value in rows.items():
        summary.add_row(name, Text(value))
    console.print(summary)
    _print_layouts(console, plan)
    measured = [each for each in plan.layouts if each.measured]
    if measured:
        console.print(_details(measured))
    for text in plan.assumptions():
        console.print(Text(f"assumed: {text}"))


def _print_layouts(console: Console, plan: Plan) -> None:
    """Print as many columns as there is room for: what identifies a layout is never cut."""
    left_out: list[str] = []
    table = _layouts(plan, left_out)
    for name in FIRST_TO_GO:
        if console.measure(table, options=console.options.update(width=WIDE)).maximum <= console.width:
            break
        left_out.append(name)
        table = _layouts(plan, left_out)
    console.print(table)
    if left_out:
        console.print(Text(f"no room for {', '.join(left_out)}: a wider terminal, a pipe or --json shows all"))


def _layouts(plan: Plan, left_out: Collection[str]) -> Table:
    table = Table(title="Layouts, the fastest first; memory of one GPU, measured or (~) by closed forms", box=SIMPLE)
    rows = [_figures(plan, rank, each) for rank, each in enumerate(plan.layouts, 1)]
    names = [name for name in rows[0] if name not in left_out] if rows else []
    for name in names:
        table.add_column(name, justify="left" if name == "layout" else "right", no_wrap=name != "layout")
    for row in rows:
        table.add_row(*(Text(row[name]) for name in names))
    return table


def _figures(plan: Plan, rank: int, planned: PlannedLayout) -> dict[str, str]:
    """What the columns say of a layout."""
    layout = planned.layout
    return {
        "": str(rank),
        "layout": str(layout),
        "sequences": f"{layout.parts} x {layout.sequences}",
        "memory": ("" if planned.measured else "~ ") + shown(planned.total, "B"),
        "tokens/step": f"{planned.step_tokens:,}",
        "steps": f"{plan.steps(planned):,}",
        "s/step": f"{planned.step_seconds:.3g}",
        "days": f"{planned.days(plan.tokens):.3g}",
    }


def _details(measured: list[PlannedLayout]) -> Table:
    """What a GPU holds at the peak and sends in a step: measured, with the closed forms in brackets."""
    table = Table(
        title="One GPU: bytes at the peak of a step, and bytes sent in it; closed forms in brackets", box=SIMPLE
    )
    table.add_column("")
    for each in measured:
        table.add_column(str(each.layout), justify="right")
    for kind in KINDS:
        table.add_row(
            kind, *(_both(each.measured.memory[kind], each.memory[kind]) for each in measured if each.measured)
        )
    table.add_row("in all", *(_both(each.total, sum(each.memory.values())) for each in measured), end_section=True)
    for axis in AXES[:3]:
        table.add_row(
            f"sent: {axis}", *(_both(each.measured.sent[axis], each.sent[axis]) for each in measured if each.measured)
        )
    return table


def _both(found: float, formula: float) -> str:
    return f"{shown(found, 'B')} ({shown(formula, 'B')})"
