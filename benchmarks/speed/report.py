"""docs/performance.md with its charts, made of the latest result files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.speed import plots
from benchmarks.speed.corpus import ROOT, WORK
from benchmarks.speed.limits import name_of

Rows = list[dict[str, Any]]


def main(quick: bool) -> None:
    """Write the page; that of a try goes where results of tries go."""
    folder = WORK / "docs" if quick else ROOT / "docs"
    (folder / "images").mkdir(parents=True, exist_ok=True)
    found = {name: read(name, quick) for name in SECTIONS}
    parts = [INTRODUCTION, goals_section([row for rows in found.values() for row in rows])]
    parts += [SECTIONS[name](rows, folder / "images") for name, rows in found.items() if rows]
    (folder / "performance.md").write_text("\n".join(parts), encoding="utf-8", newline="\n")
    print(f"written: {folder / 'performance.md'}")


def read(name: str, quick: bool) -> Rows:
    """The rows of a result file, if there is one."""
    stem = name if name == "int8_bleu" else name_of(name, quick)
    file = results.RESULTS / f"{stem}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown, its first column to the left and the others to the right."""
    marks = ["---"] + ["--:"] * (len(heads) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, marks, *lines]) + "\n"


def number(row: dict[str, Any] | None) -> str:
    """A figure with its spread, if it has one."""
    if row is None:
        return ""
    text = f"{row['value']:,.4g}"
    return f"{text} ({row['low']:,.4g} - {row['high']:,.4g})" if "low" in row else text


def find(rows: Rows, **wanted: Any) -> dict[str, Any] | None:
    """The first row with these values."""
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)


def reached(row: dict[str, Any], key: str) -> bool:
    """Whether a row's value is what its goal says."""
    if row[key] == "-":
        return True
    relation, bound = row[key].split()
    return bool(row["value"] >= float(bound) if relation == ">=" else row["value"] <= float(bound))


def goals_section(rows: Rows) -> str:
    """What this project sets out to reach, and what of it is reached."""
    lines = [
        [row["measure"], number(row), row["required"], "yes" if reached(row, "required") else "**no**"]
        for row in rows
        if row["required"] != "-"
    ]
    return "## Goals\n\n" + table(["", "measured", "goal", "reached"], lines)


def distinct(rows: Rows, key: str) -> list[Any]:
    """The values of a key, each once, in their order."""
    return list(dict.fromkeys(row[key] for row in rows if key in row))


def origin(rows: Rows) -> str:
    """Where the figures of a section come from."""
    first = rows[0]
    versions = {name: text for row in rows for name, text in row.get("peer_versions", {}).items()}
    peers = "".join(f", {name} {text}" for name, text in versions.items() if name not in first["versions"])
    packages = ", ".join(f"{name} {text}" for name, text in first["versions"].items() if name != "machine")
    data = f" Data: {first['data']}." if "data" in first else ""
    return (
        f"`{first['command']}`, commit {first['commit']}, on {first['versions']['machine']}; {packages}{peers}.{data}\n"
    )


def limits_section(rows: Rows, images: Path) -> str:
    """The machine."""
    threads = distinct(rows, "threads")
    lines = [
        [what, *(f"{row['value']} {row['unit']}" for n in threads if (row := find(rows, what=what, threads=n)))]
        for what in distinct(rows, "what")
    ]
    return f"## The machine\n\n{origin(rows)}\n{table(['', *(f'on {n} of the cores' for n in threads)], lines)}"


def training_section(rows: Rows, images: Path) -> str:
    """Training beside others."""
    text = ["## Training\n", origin(rows), TRAINING]
    charts: dict[str, dict[str, float]] = {}
    for size in distinct(rows, "size"):
        lines = []
        for system in distinct([row for row in rows if row["what"].startswith("speed")], "system"):
            line = [system]
            for which in ("own", "same"):
                speed = find(rows, size=size, system=system, what=f"speed, {which} batches")
                share = find(rows, size=size, system=system, what=f"useful share of GEMM peak, {which} batches")
                ratio = find(rows, size=size, system=system, what=f"heedful / this, {which} batches")
                padding = f"{speed['padding']:.0f} %" if speed else ""
                line += [number(speed), padding, f"{share['value']:.0f} %" if share else "", number(ratio)]
                if speed and which == "own":
                    charts.setdefault(size, {})[system] = speed["value"]
            memory = find(rows, size=size, system=system, what="peak memory")
            lines.append([*line, f"{memory['value']:,.0f}" if memory else ""])
        heads = ["", "own batches", "padding", "of peak", "heedful / it"]
        heads += ["same batches", "padding", "of peak", "heedful / it", "MB"]
        text += [f"### {size}\n", table(heads, lines)]
    plots.bars(images / "performance-training.svg", "Target tokens a second, batches of each one's own", charts)
    text += ["![Training speed](images/performance-training.svg)\n", left_out(rows)]
    return "\n".join(text)


def translation_section(rows: Rows, images: Path) -> str:
    """Translation beside others."""
    trained = rows[0]["weights"] != "random weights"
    name = "trained" if trained else "random"
    text = [f"## Translation, {rows[0]['weights']}, beam 5\n", origin(rows), TRANSLATION]
    charts: dict[str, dict[str, float]] = {}
    for size in distinct(rows, "size"):
        lines = []
        for system in distinct([row for row in rows if row["what"] == "speed"], "system"):
            found = {row["what"]: row for row in rows if row["system"] == system and row["size"] == size}
            speed = found.get("speed")
            line = [system, speed["setting"] if speed else ""]
            columns = ("speed", "output speed", "heedful / this", "heedful int8 / this")
            columns += ("same as heedful", "BLEU", "peak memory")
            lines.append([*line, *(number(found.get(what)) for what in columns)])
            charts.setdefault(size, {})[system] = found["speed"]["value"]
        heads = ["", "setting", "sentences/s", "tokens/s", "heedful / it", "heedful int8 / it"]
        heads += ["same texts, %", "BLEU", "MB"]
        text += [f"### {size}\n", table(heads, lines)]
        for what, column in (("latency of one sentence", "ms"), ("start to first translation", "s")):
            chosen = [row for row in rows if row["size"] == size and row["what"] == what]
            if chosen:
                text.append(table([what, column], [[row["system"], number(row)] for row in chosen]))
    plots.bars(images / f"performance-translation-{name}.svg", "Translation: sentences a second", charts)
    text += [f"![Translation speed](images/performance-translation-{name}.svg)\n", left_out(rows)]
    return "\n".join(text)


def left_out(rows: Rows) -> str:
    """Who did not run, and why."""
    chosen = dict.fromkeys((row["system"], row["unit"]) for row in rows if row["what"] == "left out")
    return "".join(f"{system} is left out: {why}\n" for system, why in chosen)


def scaling_section(rows: Rows, images: Path) -> str:
    """Cost by length and by batch."""
    text = ["## How cost grows\n", origin(rows)]
    for count, what in enumerate(distinct(rows, "what")):
        chosen = [row for row in rows if row["what"] == what]
        series: plots.Series = {}
        for row in chosen:
            series.setdefault(row["series"], []).append((row["x"], row["value"]))
        axis = {"length": "tokens in a sequence", "batch": "sentences at a time"}[chosen[0]["axis"]]
        file = images / f"performance-scaling-{count + 1}.svg"
        plots.lines(file, what, series, axis, chosen[0]["unit"])
        values = distinct(chosen, "x")
        lines = [
            [name, *(number(find(chosen, series=name, x=x)) for x in values)] for name in distinct(chosen, "series")
        ]
        heads = [f"{what}, {chosen[0]['unit']}", *(f"{x:,}" for x in values)]
        text += [table(heads, lines), f"![{what}](images/{file.name})\n"]
    return "\n".join(text)


def engine_section(rows: Rows, images: Path) -> str:
    """The engine beside others."""
    lines = []
    for row in rows:
        either = [figures(row[side], row["figures_in"]) if side in row else "" for side in ("ours", "theirs")]
        value = f"{row['value']:,.4g}{'' if row['unit'] == 'x' else ' ' + row['unit']}"
        goals = [row["required"], row["aim"], "yes" if reached(row, "required") else "**no**"]
        lines.append([row["what"], row["against"], row.get("setting", ""), *either, value, *goals])
    heads = ["", "beside", "its best setting", "heedful", "the other", "ratio", "goal", "aim", "reached"]
    return "\n".join(["## heedful's engine\n", origin(rows), ENGINE, table(heads, lines)])


def figures(each: list[float], unit: str) -> str:
    """A median, the lowest and the highest."""
    median, low, high = (f"{value:,.4g}" for value in each)
    return f"{median} ({low} - {high}) {unit}"


def int8_section(rows: Rows, images: Path) -> str:
    """What rounding to 8 bits costs."""
    lines = [
        [row["measure"], f"{row['value']:+.2f}" if "difference" in row["measure"] else number(row)] for row in rows
    ]
    return "\n".join(["## BLEU with weights of 8 bits\n", origin(rows), table(["", "BLEU"], lines)])


SECTIONS = {
    "limits": limits_section,
    "training": training_section,
    "engine": engine_section,
    "translation": translation_section,
    "translation_trained": translation_section,
    "int8_bleu": int8_section,
    "scaling": scaling_section,
}

INTRODUCTION = """# Performance

Made by `heedful bench report` from the files in `benchmarks/results`; `make bench` measures everything again. Systems
are measured in turns (A, B, A, B, ...), each in its own process; figures are medians, with the lowest and the
highest. Peers come from their released packages, in separate environments with the same torch.
What limits the figures, and what was tried, is in [speed.md](speed.md).
"""
TRAINING = """\
Every step is forward, backward, clipping and the optimizer, on batches that were padded before. "Own batches" are
those of each one's own loader, with about as many sentences: heedful's are of nearly equal lengths, JoeyNMT's random
up to a number of tokens, the others' random. "Same batches" are random ones, the same for all. "Of peak" is the share
of the measured GEMM peak that goes into real tokens. All have dropout 0.1 and label smoothing 0.1 (x-transformers has
no smoothing); heedful keeps its moving average besides. All run on one thread; the last table has the narrowest model
on all cores, which heedful uses by workers with a part of the batch each, the others by threads.
"""
TRANSLATION = """\
The same weights, tokens in and tokens out, all cores, no length penalty, so that all look for the same text.
CTranslate2 and Hugging Face have the best of several settings. Random weights do not know when to end: with them all
write as many tokens, and slow systems fewer sentences. With trained weights all translate the same sentences.
For heedful the start is that of its command, `heedful translate`; for the others that of a program which
imports the package, loads the model and translates.
"""
ENGINE = """\
The same weights for all, beam 5 without a length penalty unless something else is said, all cores. A ratio is how many
times as fast heedful is; of memory, how many times as much it takes. CTranslate2 and Hugging Face have the best of
several settings, for each row anew. "tokenizers and CTranslate2" is a program of a few lines,
`benchmarks/speed/drivers/ctranslate2_lines.py`, beside `heedful translate MODEL --precision int8`: both read lines of
text and write lines of text, and what is measured is the whole command. Memory is the largest resident memory of all
its processes. Before the GPT is measured, all three systems must give the same text with the same log-probability.
"""
