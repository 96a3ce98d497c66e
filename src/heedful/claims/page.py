"""The page of all verdicts: one file with its style and its drawings, which runs no program and needs no network."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from heedful.claims.budgets import BUDGETS
from heedful.claims.chart_svg import draw_chart, shown
from heedful.claims.claim import Claim, find_code
from heedful.claims.evidence import Evidence, Number
from heedful.claims.results import Result, Row, seconds_spent
from heedful.inspection.standalone_page import page_file

KINDS = {
    "holds": "good",
    "holds in part": "part",
    "does not hold at this size": "bad",
    "too short to tell": "open",
}
# What the seconds of a claim are that was measured on one core: see claims/learning/clock.py.
OF_ONE_CORE = "of processor time on one core"


def claims_page(rows: list[Row], quick: bool, command: str) -> str:
    """The page as HTML."""
    style = page_file("training.css") + page_file("claims.css")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
    body = "".join(_section(row) for row in rows)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>The claims, measured</title>
<style>{style}</style>
</head>
<body class="claims">
<header><div><p class="brand">heedful claims</p><h1>The claims, measured</h1>
<p class="about">{escape(_about(rows, quick))} Made by <code>{escape(command)}</code>.</p></div></header>
<main>{_overview(rows)}{body}</main>
</body>
</html>
"""


def _about(rows: list[Row], quick: bool) -> str:
    measured = [row for row in rows if row.origin == "measured"]
    spent = seconds_spent(rows)
    minutes = f"{spent / 60:.0f} minutes" if spent >= 120 else f"{spent:.0f} seconds"
    if all(row.result is None or row.result.cores == 1 for row in measured):
        minutes += f" {OF_ONE_CORE}"
    how = "quickly, from one seed where models are trained" if quick else "from three seeds where models are trained"
    words = f"{len(measured)} of {len(rows)} claims were measured on this machine, {how}, in {minutes}."
    if quick:
        words += " One seed has no spread: where trained models differ by little, that may be chance."
    others = [row for row in rows if row.origin == "committed"]
    if others:
        words += f" {len(others)} show the result of the full run that comes with heedful's source code, labelled so."
    return words


def _overview(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        verdict = _verdict(row)
        name = f'<a href="#{row.claim.name}">{escape(row.claim.title)}</a>'
        lines.append(f"<li>{verdict}<span>{name}</span></li>")
    return f'<nav aria-label="All claims"><ol class="verdicts">{"".join(lines)}</ol></nav>'


def _verdict(row: Row) -> str:
    if row.result is None:
        return '<span class="verdict open">not measured here</span>'
    verdict = row.result.evidence.verdict
    committed = " (committed)" if row.origin == "committed" else ""
    return f'<span class="verdict {KINDS[verdict]}">{verdict}{committed}</span>'


def _section(row: Row) -> str:
    claim = row.claim
    head = f"<h2>{escape(claim.title)}</h2><blockquote>{escape(claim.sentence)}</blockquote>"
    head += f'<p class="about">{escape(claim.source)}</p>'
    found = _absent(row) if row.result is None else _found(row, row.result)
    return f'<section class="card claim" id="{claim.name}">{head}{found}{_code(claim)}</section>'


def _absent(row: Row) -> str:
    minutes = max(1, BUDGETS[row.claim.name][1] // 60)
    words = "A quick run does not measure this claim, and no committed result was found. "
    words += f"It takes up to {minutes} minute{'s' if minutes > 1 else ''} on two cores:"
    return f"<p>{_verdict(row)}</p><p>{words} <code>{escape(row.claim.command)}</code></p>"


def _found(row: Row, result: Result) -> str:
    evidence = result.evidence
    because = evidence.because[:1].upper() + evidence.because[1:]
    words = f"<p>{_verdict(row)} {escape(because)}.</p>"
    charts = "".join(draw_chart(chart) for chart in evidence.charts)
    label = ""
    if row.origin == "committed":
        label = '<p class="about">This is the committed result of the full run, not measured on this machine. '
        label += f"To measure it here: <code>{escape(row.claim.command)}</code></p>"
    return f'{words}{label}<div class="drawings">{charts}</div>{_numbers(evidence)}{_how(row, result)}'


def _numbers(evidence: Evidence) -> str:
    rows = "".join(f"<tr><th>{escape(each.name)}</th>{_cells(each)}</tr>" for each in evidence.numbers)
    head = "<thead><tr><th>measured</th><th>mean</th><th>least to greatest</th><th>runs</th></tr></thead>"
    return f'<div class="scroll"><table class="numbers">{head}<tbody>{rows}</tbody></table></div>'


def _cells(each: Number) -> str:
    unit = f" <small>{escape(each.unit)}</small>" if each.unit else ""
    spread = f"{shown(each.low)} to {shown(each.high)}" if each.runs > 1 else ""
    return f"<td>{shown(each.mean)}{unit}</td><td>{spread}</td><td>{each.runs}</td>"


def _how(row: Row, result: Result) -> str:
    mode = "quick" if result.quick else "full"
    command = row.claim.command + (" --quick" if result.quick else "")
    time = f"{result.seconds:,.0f} s {f'on {result.cores} cores' if result.cores > 1 else OF_ONE_CORE}"
    items = [
        ("method", escape(row.claim.method)),
        ("run", escape(result.evidence.ran)),
        ("took", f"{time} ({mode}), torch {escape(result.torch)}"),
        ("again", f"<code>{escape(command)}</code>"),
    ]
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{words}</dd>" for name, words in items) + "</dl>"


def _code(claim: Claim) -> str:
    places = [find_code(each) for each in claim.code]
    parts = [
        f"<details><summary><code>{escape(each.shown)}</code></summary><pre>{escape(each.text)}</pre></details>"
        for each in places
    ]
    return f'<div class="code"><p class="about">The code that it is about</p>{"".join(parts)}</div>'
