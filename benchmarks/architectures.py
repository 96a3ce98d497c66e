"""What the Transformer replaced, beside it: Multi30k English-German, equal time, about equal parameters.

    .venv/bin/python benchmarks/architectures.py --data ../shared/data/multi30k

Trains, for 20 minutes each: the Transformer, an LSTM with additive attention, and the Transformer with additive in
place of dot-product attention. Writes BLEU on test_2016_flickr, speed, and the loss over time and over tokens, as a
table and as a plot. The data is task 1 of https://github.com/multi30k/dataset. Stopped and started again, it goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import results

COMMAND = "python benchmarks/architectures.py"
ADDITIVE = ["--set=model.encoder.attention.scoring=additive", "--set=model.decoder.attention.scoring=additive"]
SYSTEMS = {
    "Transformer": [],
    "LSTM, additive attention": ["--family", "recurrent"],
    "Transformer, additive attention": ADDITIVE,
}
REQUIRED = {"LSTM, additive attention": ">= 25"}
COLOURS = ("#2563eb", "#dc2626", "#059669")


def heedful(*arguments: str) -> str:
    """Run a heedful command to its end, and give what it prints."""
    print("+ heedful", *arguments, flush=True)
    command = [sys.executable, "-m", "heedful", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    """Train and evaluate all, write the result file and the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multi30k"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/runs/architectures"))
    parser.add_argument("--budget", default="20m")
    options = parser.parse_args()

    def file(name: str) -> str:
        return str(options.data / f"{name}.gz")

    rows, curves = [], {}
    for name, settings in SYSTEMS.items():
        folder = options.out / name.lower().replace(",", "").replace(" ", "-")
        files = ["--source", file("train.en"), "--target", file("train.de")]
        files += ["--valid-source", file("val.en"), "--valid-target", file("val.de")]
        heedful("train", "translation", *files, "--out", str(folder), "--budget", options.budget, *settings)
        test = ["--source", file("test_2016_flickr.en"), "--reference", file("test_2016_flickr.de")]
        scores = json.loads(heedful("evaluate", str(folder), *test, "--json"))
        curves[name] = curve(folder)
        rows += [*measured(name, folder, scores, curves[name]), results.health(folder, COMMAND)]
    results.write("architectures", rows)
    plot(curves, Path("docs/images/architectures.svg"))


def measured(name: str, folder: Path, scores: dict[str, Any], points: list[dict[str, float]]) -> list[dict[str, Any]]:
    """The rows of one system."""
    saved = json.loads((folder / "run" / "config.json").read_text(encoding="utf-8"))["saved"]
    choices = {each["name"]: each["value"] for each in saved["choices"]}
    steps = [each for each in metrics(folder) if each["kind"] == "train"]
    seconds = sum(each["seconds"] for each in steps)
    speed = sum(each["target_tokens"] for each in steps) / seconds
    figures = [
        ("BLEU, test_2016_flickr, beam 5", round(scores["bleu"], 2), scores["bleu_signature"], REQUIRED.get(name, "-")),
        ("parameters", int(choices["parameters"].replace(",", "")), "", "-"),
        ("training speed", round(speed), "target tokens/s", "-"),
        ("validation loss at the end", round(points[-1]["loss"], 4), "nats/subword", "-"),
        ("translation speed, beam 5", round(scores["sentences"] / scores["seconds"], 1), "sentences/s", "-"),
    ]
    return [results.row(f"{name}: {what}", *rest, seconds, COMMAND) for what, *rest in figures]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """All that was measured in a run."""
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def curve(folder: Path) -> list[dict[str, float]]:
    """Minutes, million target tokens and loss at each validation."""
    points, tokens = [], 0
    for each in metrics(folder):
        if each["kind"] == "train":
            tokens += each["target_tokens"]
        else:
            points.append({"minutes": each["elapsed"] / 60, "tokens": tokens / 1e6, "loss": each["loss"]})
    return points


def plot(curves: dict[str, list[dict[str, float]]], path: Path) -> None:
    """The loss over time and over tokens, as one SVG file."""
    width, height, left, top = 400, 260, 46, 30
    losses = [point["loss"] for points in curves.values() for point in points]
    low, high = min(losses) * 0.98, max(losses) * 1.02
    parts = []
    for panel, (axis, label) in enumerate((("minutes", "minutes"), ("tokens", "million target tokens"))):
        x0 = panel * width + left
        x1 = (panel + 1) * width - 14
        most = max(point[axis] for points in curves.values() for point in points)
        parts.append(f'<path d="M{x0} {top}V{height - 40}H{x1}" fill="none" stroke="#888"/>')
        parts.append(f'<text x="{x1}" y="{top + 12}" text-anchor="end">validation loss, nats a subword</text>')
        parts.append(f'<text x="{(x0 + x1) / 2}" y="{height - 6}" text-anchor="middle">{label}</text>')
        for share in (0, 0.5, 1):
            x, y = x0 + share * (x1 - x0), height - 40 - share * (height - 40 - top)
            parts.append(f'<text x="{x}" y="{height - 24}" text-anchor="middle">{share * most:.3g}</text>')
            parts.append(f'<text x="{x0 - 5}" y="{y + 4}" text-anchor="end">{low + share * (high - low):.2f}</text>')
        for colour, points in zip(COLOURS, curves.values(), strict=True):
            places = [
                f"{x0 + point[axis] / most * (x1 - x0):.1f},"
                f"{height - 40 - (point['loss'] - low) / (high - low) * (height - 40 - top):.1f}"
                for point in points
            ]
            parts.append(f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for number, (colour, name) in enumerate(zip(COLOURS, curves, strict=True)):
        parts.append(f'<text x="{left + number * 250}" y="18" fill="{colour}" font-weight="bold">{name}</text>')
    size = f'width="{2 * width}" height="{height}" viewBox="0 0 {2 * width} {height}"'
    style = 'font-family="sans-serif" font-size="12" fill="#444"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{background}{"".join(parts)}</svg>\n'
    path.write_text(svg, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
