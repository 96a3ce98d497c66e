"""Charts as inline SVG, drawn by Python: lines with the spread of their runs, and bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from heedful.claims.evidence import Chart, Series

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 58, 14, 12, 44
TONES = ("blue", "orange", "green", "violet", "red", "teal", "brown", "grey")
Scale = Callable[[float], float]


def draw_chart(chart: Chart) -> str:
    """A chart as an HTML figure: its title, a legend, the drawing, and its numbers as a table."""
    legend = "".join(
        f'<span class="tone-{_tone(place)}">{escape(each.name)}</span>' for place, each in enumerate(chart.series)
    )
    label = escape(f"{chart.title}: {', '.join(each.name for each in chart.series)}")
    inside = _bars(chart) if chart.places else _lines(chart)
    drawing = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{inside}</svg>'
    title = f"<figcaption>{escape(chart.title)}</figcaption>"
    return f'<figure>{title}<p class="keys">{legend}</p>{drawing}{_table(chart)}</figure>'


def shown(value: float) -> str:
    """A number for readers: four digits, and powers of ten where it is very small or large."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    else:
        text = f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return text.replace("-", "\N{MINUS SIGN}")


def ticks(low: float, high: float, logarithmic: bool, most: int = 6) -> list[float]:
    """Round numbers between two limits."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        stride = max(1, math.ceil((last - first) / most))
        factors = (1, 2, 5) if last - first <= 2 else (1,)
        found = [factor * 10.0**power for power in range(first, last + 1, stride) for factor in factors]
        return [each for each in found if low * 0.999 <= each <= high * 1.001]
    rough = (high - low) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _tone(place: int) -> str:
    return TONES[place % len(TONES)]


def _values(chart: Chart) -> list[float]:
    found = [value for each in chart.series for value in (*each.y, *each.low, *each.high)]
    return [value for value in found if value > 0] if chart.y_log else found


def _span(values: Sequence[float], logarithmic: bool, from_zero: bool = False) -> tuple[float, float]:
    """The ends of an axis, with a small margin."""
    low, high = (min(values), max(values)) if values else (0.1, 1.0)
    if logarithmic:
        return low / 1.25, high * 1.25
    room = 0.06 * (high - low or abs(high) or 1.0)
    return (min(0.0, low - room) if low < 0 else 0.0) if from_zero else low - room, high + room


def _scale(low: float, high: float, start: float, end: float, logarithmic: bool) -> Scale:
    if logarithmic:
        least, first, last = low, math.log(low), math.log(high)
        # Values too small for the axis, or zero, are put at its end.
        return lambda value: start + (math.log(max(value, least)) - first) / (last - first) * (end - start)
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _frame(chart: Chart, y: Scale, low: float, high: float) -> list[str]:
    """The horizontal lines with their numbers, and the names of both axes."""
    parts = []
    for value in ticks(low, high, chart.y_log):
        at = y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{shown(value)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {middle})"'
    parts.append(f'<text class="name" x="12" y="{middle}" text-anchor="middle" {turned}>{escape(chart.y_label)}</text>')
    centre = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="name" x="{centre}" y="{HEIGHT - 6}" text-anchor="middle">{escape(chart.x_label)}</text>'
    )
    return parts


def _lines(chart: Chart) -> str:
    low, high = _span(_values(chart), chart.y_log)
    places = [value for each in chart.series for value in each.x]
    first, last = (min(places), max(places)) if chart.x_log else _span(places, False)
    first, last = (first / 1.1, last * 1.1) if chart.x_log else (first, last)
    x = _scale(first, last, LEFT, WIDTH - RIGHT, chart.x_log)
    y = _scale(low, high, HEIGHT - BOTTOM, TOP, chart.y_log)
    parts = _frame(chart, y, low, high)
    for value in _x_ticks(chart, places, first, last):
        words = f"{shown(value)}</text>"
        parts.append(f'<text class="tick" x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{words}')
    for place, each in enumerate(chart.series):
        parts.append(f'<g class="tone-{_tone(place)}">{_line(each, x, y, len(each.x) <= 24)}</g>')
    return "".join(parts)


def _x_ticks(chart: Chart, places: Sequence[float], first: float, last: float) -> list[float]:
    """The measured places themselves if they are few, otherwise round numbers."""
    own = sorted(set(places))
    return own if chart.x_log and len(own) <= 10 else ticks(first, last, chart.x_log)


def _line(line: Series, x: Scale, y: Scale, dots: bool) -> str:
    """A line, the band of its spread, and a dot for each point if there are few."""
    points = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.x, line.y, strict=True)]
    parts = [f'<polyline class="line" points="{" ".join(points)}"/>']
    if line.low:
        edge = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.x, line.low, strict=True)]
        edge += [f"{x(a):.1f},{y(b):.1f}" for a, b in reversed(list(zip(line.x, line.high, strict=True)))]
        parts.insert(0, f'<polygon class="band" points="{" ".join(edge)}"/>')
    if dots:
        for a, b in zip(line.x, line.y, strict=True):
            words = f"<title>{escape(line.name)}: {shown(a)}, {shown(b)}</title>"
            parts.append(f'<circle class="dot" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3">{words}</circle>')
    return "".join(parts)


def _bars(chart: Chart) -> str:
    low, high = _span(_values(chart), chart.y_log, from_zero=True)
    y = _scale(low, high, HEIGHT - BOTTOM, TOP, chart.y_log)
    parts = _frame(chart, y, low, high)
    slot = (WIDTH - LEFT - RIGHT) / len(chart.places)
    bar = slot * 0.8 / len(chart.series)
    base = y(low if chart.y_log else 0.0)
    for place, name in enumerate(chart.places):
        at = LEFT + slot * (place + 0.5)
        parts.append(_place_name(at, name, slot))
        for number, each in enumerate(chart.series):
            value = each.y[place]
            top = base if chart.y_log and value <= 0 else y(value)
            left = at - slot * 0.4 + bar * number
            upper, size = min(top, base), abs(base - top)
            words = f"<title>{escape(each.name)}, {escape(name)}: {shown(value)}</title>"
            shape = f'x="{left:.1f}" y="{upper:.1f}" width="{bar * 0.92:.1f}" height="{size:.1f}"'
            parts.append(f'<g class="tone-{_tone(number)}"><rect class="bar" {shape}>{words}</rect>')
            if each.low and (each.low[place] > 0 or not chart.y_log):
                middle = left + bar * 0.46
                ends = f"M{middle:.1f} {y(each.low[place]):.1f}V{y(each.high[place]):.1f}"
                parts.append(f'<path class="spread" d="{ends}"/>')
            parts.append("</g>")
    return "".join(parts)


def _place_name(at: float, name: str, slot: float) -> str:
    """The name below a bar: on two lines if it is too long for one, and vertical if there are many bars."""
    if slot < 30 and len(name) < 8:
        upright = f'text-anchor="end" transform="translate({at + 4:.1f} {HEIGHT - BOTTOM + 6}) rotate(-90)"'
        return f'<text class="tick" {upright}>{escape(name)}</text>'
    lines = [name]
    if len(name) * 6.2 > slot and " " in name:
        words = name.split()
        half = max(1, len(words) // 2)
        lines = [" ".join(words[:half]), " ".join(words[half:])]
    longest = max(map(len, lines))
    # Set as a length, not as a font size: the page's policy allows no inline styles.
    size = "" if longest * 6.2 <= slot else f' textLength="{slot * 0.95:.0f}" lengthAdjust="spacingAndGlyphs"'
    first, middle = HEIGHT - BOTTOM + 15, f'text-anchor="middle"{size}'
    return "".join(
        f'<text class="tick" x="{at:.1f}" y="{first + 12 * row}" {middle}>{escape(line)}</text>'
        for row, line in enumerate(lines)
    )


def _table(chart: Chart) -> str:
    """The numbers of a chart, for those who cannot see it or want them exactly."""
    names = chart.places or tuple(
        shown(value) for value in sorted({value for each in chart.series for value in each.x})
    )
    if len(names) > 24:
        return ""
    places = range(len(names)) if chart.places else sorted({value for each in chart.series for value in each.x})
    head = "".join(f"<th>{escape(each.name)}</th>" for each in chart.series)
    rows = []
    for name, place in zip(names, places, strict=True):
        cells = []
        for each in chart.series:
            by_place = dict(zip(range(len(each.y)) if chart.places else each.x, each.y, strict=True))
            cells.append(f"<td>{shown(by_place[place])}</td>" if place in by_place else "<td></td>")
        rows.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    table = (
        f"<table><thead><tr><th>{escape(chart.x_label)}</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return f'<details><summary>its numbers</summary><div class="scroll">{table}</div></details>'
