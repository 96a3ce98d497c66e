"""A plan as a picture: the memory of one GPU under each layout, stacked by kind, against the limit."""

from __future__ import annotations

from xml.sax.saxutils import escape

from heedful.planning.live_bytes import KINDS
from heedful.planning.plan import Plan
from heedful.planning.quantities import count, shown

COLOURS = {
    "parameters": "#2563eb",
    "gradients": "#059669",
    "optimizer": "#7c3aed",
    "activations": "#d97706",
    "buffers": "#64748b",
}
WIDTH, LEFT, RIGHT, TOP, ROW = 900, 330, 90, 84, 30


def picture(plan: Plan, suffix: str) -> str:
    """The picture as an SVG file, or as an HTML page that holds it."""
    svg = _svg(plan)
    if suffix == ".svg":
        return svg
    style = "body{font-family:sans-serif;color:#334155;margin:2em;max-width:900px}svg{width:100%;height:auto}"
    head = f'<meta charset="utf-8"><title>{escape(plan.subject.name)}</title><style>{style}</style>'
    notes = "".join(f"<li>{escape(each)}</li>" for each in plan.assumptions())
    body = f"{svg}<h2>Assumed</h2><ul>{notes}</ul>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _svg(plan: Plan) -> str:
    limit = plan.hardware.memory
    most = max(limit, *(each.total for each in plan.layouts)) * 1.02
    scale = (WIDTH - LEFT - RIGHT) / most
    height = TOP + ROW * len(plan.layouts) + 34
    parts = [f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    title = f"{plan.subject.name}, {count(plan.parameters)} parameters, on {plan.gpus:,} GPUs: memory of one GPU"
    parts.append(_text(14, 24, title, ' font-size="15" font-weight="bold"'))
    x = LEFT
    for kind in KINDS:
        parts.append(f'<rect x="{x}" y="44" width="11" height="11" fill="{COLOURS[kind]}"/>')
        parts.append(_text(x + 15, 54, kind))
        x += 96
    for number, each in enumerate(plan.layouts):
        y, at = TOP + ROW * number, float(LEFT)
        memory = each.measured.memory if each.measured else each.memory
        parts.append(_text(LEFT - 8, y + 14, str(each.layout), ' text-anchor="end"'))
        for kind in KINDS:
            length = memory.get(kind, 0) * scale
            words = f"{kind}: {shown(memory.get(kind, 0), 'B')}"
            faded = "" if each.measured else ' opacity="0.55"'
            parts.append(
                f'<rect x="{at:.1f}" y="{y}" width="{length:.1f}" height="20" fill="{COLOURS[kind]}"{faded}>'
                f"<title>{words}</title></rect>"
            )
            at += length
        parts.append(_text(at + 6, y + 14, shown(each.total, "B")))
    edge, bottom = LEFT + limit * scale, TOP + ROW * len(plan.layouts)
    line = f'<path d="M{edge:.1f} {TOP - 10}V{bottom}" stroke="#dc2626" stroke-width="2" stroke-dasharray="5 3"/>'
    parts += [line, _text(edge, bottom + 14, f"limit: {shown(limit, 'B')}", ' text-anchor="end" fill="#dc2626"')]
    parts.append(_text(14, bottom + 14, "full colour: a measured step; faint: closed forms"))
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    style = 'font-family="sans-serif" font-size="12" fill="#334155"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(parts)}</svg>\n'


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{more}>{escape(words)}</text>'
