"""A plan as text."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.planning.layouts import AXES
from heedful.planning.live_bytes import KINDS
from heedful.planning.plan import Plan
from heedful.planning.quantities import count, shown
from heedful.planning.ranking import PlannedLayout


def print_plan(plan: Plan) -> None:
    """Print a plan: what is planned, the layouts, and what was assumed."""
    console = Console(soft_wrap=True)
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
    console.print(_layouts(plan))
    measured = [each for each in plan.layouts if each.measured]
    if measured:
        console.print(_details(measured))
    for text in plan.assumptions():
        console.print(Text(f"assumed: {text}"))


def _layouts(plan: Plan) -> Table:
    table = Table(title="Layouts, the fastest first; memory of one GPU, measured or (~) by closed forms", box=SIMPLE)
    for name in ("", "layout", "sequences", "memory", "tokens/step", "steps", "s/step", "days"):
        table.add_column(name, justify="left" if name == "layout" else "right", no_wrap=name != "layout")
    for rank, each in enumerate(plan.layouts, 1):
        layout = each.layout
        table.add_row(
            str(rank),
            Text(str(layout)),
            f"{layout.parts} x {layout.sequences}",
            ("" if each.measured else "~ ") + shown(each.total, "B"),
            f"{each.step_tokens:,}",
            f"{plan.steps(each):,}",
            f"{each.step_seconds:.3g}",
            f"{each.days(plan.tokens):.3g}",
        )
    return table


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
