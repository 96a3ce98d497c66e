"""The weights that a run keeps, and what it says of them, are chosen by one and the same measure."""

import json
from collections.abc import Callable
from pathlib import Path

from heedful.inspection.run.run_record import read_run

SMALL = ["--set=model.stack={num_layers=1, attention={num_heads=2}, feed_forward={inner_width=32}}"]
SMALL += ["--set=model.width=16", "--set=training.batches.tokens_per_step=400", "--set=training.machine.workers=1"]
SMALL += ["--set=training.saving.validate_every_steps=2", "--steps", "24", "--set=training.ema_decay=0.0"]


def test_a_classifier_keeps_the_weights_with_the_fewest_wrong_answers_and_says_so(
    tmp_path: Path, run: Callable, make_sentences
) -> None:
    lines = make_sentences(400, seed=7)
    (tmp_path / "labels.tsv").write_text("".join(f"{len(line.split()) % 3}\t{line}\n" for line in lines))
    out = tmp_path / "out"
    said = run("train", "classifier", "--data", str(tmp_path / "labels.tsv"), "--out", str(out), *SMALL)
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    measured = [row for row in rows if row["kind"] == "validation"]
    fewest = min(measured, key=lambda row: (-row["accuracy"], row["loss"]))
    (line,) = (line for line in said.stderr.decode().splitlines() if line.startswith("done"))
    assert f"step {fewest['step']}, by the fewest wrong answers" in line
    assert f"validation loss {fewest['loss']:.4f}" in line
    assert read_run(out).best == fewest
    assert f"| {fewest['loss']:.4f} |" in (out / "README.md").read_text()


def test_a_language_model_keeps_the_weights_with_the_lowest_loss_and_says_so(
    tmp_path: Path, run: Callable, make_sentences
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(make_sentences(300, seed=7)) + "\n")
    said = run(
        "train", "language-model", "--text", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out"), *SMALL
    ).stderr.decode()
    best = read_run(tmp_path / "out").best
    assert best is not None
    assert f"step {best['step']}, by the lowest validation loss: {best['loss']:.4f}" in said
