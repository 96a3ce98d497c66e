"""`heedful train` says what is wrong with a run, and `heedful inspect --training` draws it."""

import random
from collections.abc import Callable
from pathlib import Path

SETTINGS = [
    "--set=model.width=32",
    "--set=model.encoder={num_layers=1, dropout=0.0, attention={num_heads=2}, feed_forward={inner_width=64}}",
    "--set=model.decoder={num_layers=1, dropout=0.0, attention={num_heads=2}, feed_forward={inner_width=64}}",
    "--set=training.batches.tokens_per_step=600",
    "--set=training.schedule.learning_rate=0.01",
    "--set=training.saving.validations=2",
]


def test_misaligned_files_are_told_at_the_end_and_on_the_page(tmp_path: Path, make_sentences, run: Callable) -> None:
    lines = make_sentences(1500, seed=4)
    (tmp_path / "a.en").write_text("\n".join(lines) + "\n")
    random.Random(2).shuffle(lines)
    (tmp_path / "a.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de", "--out", tmp_path / "model"]
    said = run("train", "translation", *files, *SETTINGS, "--steps", "100").stderr.decode()
    assert "warning: The source is ignored: the files may be misaligned." in said
    page = tmp_path / "page.html"
    run("inspect", tmp_path / "model", "--training", "--out", page)
    assert "The source is ignored: the files may be misaligned" in page.read_text(encoding="utf-8")


def test_a_folder_without_a_run_is_a_mistake(tmp_path: Path, run: Callable) -> None:
    said = run("inspect", tmp_path, "--training", "--out", tmp_path / "page.html", code=2).stderr.decode()
    assert "holds no training run" in said
    assert not (tmp_path / "page.html").exists()
