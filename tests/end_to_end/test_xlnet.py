"""The command trains an XLNet, continues a killed run bit for bit, and uses what it saved."""

import subprocess
import sys
import time
from pathlib import Path

import torch

import heedful
from heedful.model_folder import load_model_folder

STEPS = 12
SETTINGS = [
    "model.width=32",
    "model.max_length=48",
    "model.memory_length=16",
    "model.stack={num_layers=2, dropout=0.1, attention={num_heads=2, dropout=0.1}, feed_forward={inner_width=48}}",
    "training.batches={tokens_per_step=640, tokens_per_batch=320}",
    "training.saving={validations=2, checkpoint_seconds=0.0}",
    "training.machine.workers=2",
]


def test_train_kill_continue_generate_and_load(tmp_path: Path, run, make_sentences) -> None:
    (tmp_path / "book.txt").write_text("\n".join(make_sentences(400, seed=5)) + "\n")

    def command(out: str) -> list[str]:
        options = ["--text", str(tmp_path / "book.txt"), "--tokenizer", "characters", "--out", str(tmp_path / out)]
        sets = [f"--set={setting}" for setting in SETTINGS]
        return ["train", "language-model", "--family", "xlnet", *options, *sets, "--steps", str(STEPS)]

    run(*command("whole"))
    process = subprocess.Popen([sys.executable, "-m", "heedful", *command("broken")], stderr=subprocess.DEVNULL)
    metrics = tmp_path / "broken" / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count('"train"') >= 4):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert b"continuing after step" in run(*command("broken")).stderr
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
