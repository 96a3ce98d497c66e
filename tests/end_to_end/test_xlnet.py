"""The command trains an XLNet, continues a killed run bit for bit, and uses what it saved."""

import subprocess
import sys
import time
from pathlib import Path

import torch

import heedful
from heedful.model_folder import load_model_folder

STEPS = 10
MODEL = {
    "width": 32,
    "max_length": 48,
    "memory_length": 16,
    "stack": {"num_layers": 2, "attention": {"num_heads": 2, "dropout": 0.1}, "feed_forward": {"inner_width": 48}},
}
TRAINING = {
    "batches": {"tokens_per_step": 640, "tokens_per_batch": 320},
    "saving": {"validations": 2, "checkpoint_seconds": 0.0},
    "machine": {"workers": 2, "threads": 1},
}


def toml(name: str, table: dict) -> str:
    """A table of settings as TOML."""
    lines = [f"{key} = {value}" for key, value in table.items() if not isinstance(value, dict)]
    inner = [toml(f"{name}.{key}", value) for key, value in table.items() if isinstance(value, dict)]
    return "\n".join([f"[{name}]", *lines, *inner]) + "\n"


def test_train_kill_continue_generate_and_load(tmp_path: Path, run, make_sentences) -> None:
    (tmp_path / "book.txt").write_text("\n".join(make_sentences(400, seed=5)) + "\n")

    book = str(tmp_path / "book.txt")
    settings = {"model": MODEL, "training": {**TRAINING, "limit": {"steps": STEPS}}}
    data = heedful.TextData(text=(book,), tokenizer="characters")
    heedful.train(heedful.RunConfig(str(tmp_path / "whole"), data, settings=settings, family="xlnet"))

    (tmp_path / "settings.toml").write_text(toml("model", MODEL) + toml("training", TRAINING))
    files = ["--text", book, "--out", str(tmp_path / "broken"), "--config", str(tmp_path / "settings.toml")]
    options = ["--family", "xlnet", "--tokenizer", "characters", "--steps", str(STEPS)]
    command = ["train", "language-model", *files, *options]
    process = subprocess.Popen([sys.executable, "-m", "heedful", *command], stderr=subprocess.DEVNULL)
    metrics = tmp_path / "broken" / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count('"train"') >= 4):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert b"continuing after step" in run(*command).stderr
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for name in ("model.safetensors", "config.json", f"run/checkpoints/step-{STEPS:09d}/model.safetensors"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name

    generated = run("generate", whole, "red ", "--max-tokens", "70", "--seed", "3").stdout.decode()
    model = heedful.load(whole)
    options = heedful.GenerationOptions(max_tokens=70, seed=3)
    assert model.generate("red ", options) == [[generated.removesuffix("\n")]]  # beyond the context of 48
    assert 1 < model.score("red dog, blue sea").perplexity < 200

    assert model.generate("", heedful.GenerationOptions(max_tokens=3)) != [[""]]

    again = load_model_folder(whole).network
    ids = torch.randint(3, 20, (2, 13), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(again.hidden(ids), model.model.hidden(ids))
