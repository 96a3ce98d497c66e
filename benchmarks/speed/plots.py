"""Small SVG charts: bars beside each other, and lines over logarithmic axes."""

from __future__ import annotations

import math
from pathlib import Path

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#64748b")
WIDTH, TOP, BOTTOM = 760, 54, 40
Series = dict[str, list[tuple[float, float]]]


def bars(path: Path, title: str, groups: dict[str, dict[str, float]]) -> None:
    """Groups of horizontal bars, each as long as its share of the largest in its group."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    row, left, right = 18, 190, 70
    parts, y = [], TOP - 20
    for group, values in groups.items():
        y += 22
        parts.append(f'<text x="14" y="{y}" font-weight="bold">{escape(group)}</text>')
        most = max(values.values())
        for name, value in values.items():
            y += row
            length = (WIDTH - left - right) * value / most
            colour = COLOURS[names.index(name) % len(COLOURS)]
            parts.append(f'<text x="{left - 8}" y="{y}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect x="{left}" y="{y - 11}" width="{length:.1f}" height="13" rx="2" fill="{colour}"/>')
            parts.append(f'<text x="{left + length + 6:.1f}" y="{y}">{value:,.4g}</text>')
    _write(path, title, parts, y + 20)


def lines(path: Path, title: str, series: Series, x_label: str, y_label: str) -> None:
    """Lines over two logarithmic axes."""
    height, left, right = 320, 64, 24
    points = [point for each in series.values() for point in each]
    low_x, high_x = _range([x for x, _ in points])
    low_y, high_y = _range([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x) - low_x) / (high_x - low_x)
        up = (math.log(y) - low_y) / (high_y - low_y)
        return left + across * (WIDTH - left - right), height - BOTTOM - up * (height - BOTTOM - TOP)

    parts = [f'<path d="M{left} {TOP}V{height - BOTTOM}H{WIDTH - right}" fill="none" stroke="#94a3b8"/>']
    for x in sorted({x for x, _ in points}):
        parts.append(f'<text x="{place(x, 1)[0]:.1f}" y="{height - 22}" text-anchor="middle">{x:g}</text>')
    for y in _ticks(low_y, high_y):
        at = place(1, y)[1]
        parts.append(f'<path d="M{left} {at:.1f}H{WIDTH - right}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>')
    for number, (name, each) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path_points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(*point) for point in each))
        parts.append(f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + number * 170}" y="42" fill="{colour}">{escape(name)}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 5}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text x="{WIDTH - right}" y="42" text-anchor="end">{escape(y_label)}</text>')
    _write(path, title, parts, height)


def _range(values: list[float]) -> tuple[float, float]:
    low, high = math.log(min(values)), math.log(max(values))
    return (low - 0.1, high + 0.1) if high > low else (low - 1, high + 1)


def _ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    found = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return [each for each in found if low <= math.log(each) <= high]


def _write(path: Path, title: str, parts: list[str], height: float) -> None:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    style = 'font-family="sans-serif" font-size="12" fill="#334155"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    heading = f'<text x="14" y="22" font-size="14" font-weight="bold">{escape(title)}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{background}{heading}{"".join(parts)}</svg>\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg, encoding="utf-8", newline="\n")


def escape(text: str) -> str:
    """Text as it may stand in SVG."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
