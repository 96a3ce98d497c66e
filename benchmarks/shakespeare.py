"""Characters of tiny Shakespeare: beside Hugging Face in the same seconds, and as good as 30 minutes allow.

    .venv/bin/python benchmarks/shakespeare.py gpt | xlnet --data ../shared/data/tinyshakespeare

The data is input.txt of https://github.com/karpathy/char-rnn (tinyshakespeare), plain or .gz; the first 90 % are for
training. Hugging Face's GPT2LMHeadModel is trained as nanoGPT's README says for a CPU: 4 layers, width 128, context 64,
batches of 12, 2000 steps, no dropout. Then heedful gets the seconds that this took. All losses are over the whole
validation part, in windows of the model's context that do not overlap; XLNet is scored from left to right. Stopped
and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import results
import torch

from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.language_modeling.task import text_loss
from heedful.tasks.loading import load
from heedful.text.text_files import unpacked_blocks

COMMAND = "python benchmarks/shakespeare.py"
XLNET = {"model.max_length": 192, "model.memory_length": 64, "training.batches.tokens_per_step": 4096}
CONTEXT, BATCH, STEPS = 64, 12, 2000
SAME_SIZE = {
    "model.width": 128,
    "model.max_length": CONTEXT,
    "model.stack.num_layers": 4,
    "model.stack.dropout": 0.0,
    "training.batches.tokens_per_step": 2048,
    "training.schedule.learning_rate": 0.004,
    "training.saving.validations": 2,
}
FREE = {
    "model.width": 160,
    "model.max_length": 128,
    "model.stack.attention.num_heads": 5,
    "model.stack.attention.num_key_value_heads": 5,
    "model.stack.feed_forward.inner_width": 432,
    "model.stack.dropout": 0.1,
    "training.batches.tokens_per_step": 4096,
    "training.schedule.learning_rate": 0.003,
}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/tinyshakespeare"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/runs/shakespeare"))
    parser.add_argument("--budget", help="gpt: for the model of our choosing")
    options = parser.parse_args()
    measure, budget = PARTS[options.part]
    measure(options.out, options.budget or budget, *split(options.data, options.out))


def gpt(out: Path, budget: str, train: str, valid: str) -> None:
    """Beside Hugging Face, and as good as the time allows."""
    theirs = once(out / "huggingface.json", lambda: huggingface(train, valid))
    seconds = theirs["seconds"]
    ours = once(out / "same.json", lambda: heedful(out / "same", f"{seconds}s", LANGUAGE, SAME_SIZE, valid))
    free = once(out / "free.json", lambda: heedful(out / "free", budget, LANGUAGE, FREE, valid))
    unit, required = "nats/character", f"<= {theirs['loss'] - 0.08:.4f}"
    rows = [
        row("Hugging Face GPT-2, nanoGPT's CPU recipe: loss", theirs["loss"], unit, "-", seconds),
        row("Hugging Face GPT-2: training time", seconds, "s", "-", seconds),
        row("heedful, same size and seconds: loss", ours["loss"], unit, required, ours["seconds"]),
        row("gain over Hugging Face", theirs["loss"] - ours["loss"], unit, ">= 0.08", ours["seconds"]),
        row("heedful, free choice: loss", free["loss"], unit, "<= 1.58", free["seconds"]),
        row("heedful, free choice: time", free["seconds"] / 60, "minutes", "<= 30", free["seconds"]),
        *(results.health(out / name, COMMAND) for name in ("same", "free")),
    ]
    results.write("shakespeare", rows)


def xlnet(out: Path, budget: str, train: str, valid: str) -> None:
    """Permutation language modelling, scored from left to right."""
    found = once(out / "xlnet.json", lambda: heedful(out / "xlnet", budget, ["--family", "xlnet"], XLNET, valid))
    rows = [
        row("XLNet, left to right: loss", found["loss"], "nats/character", "<= 2.2", found["seconds"]),
        row("XLNet: training time, all included", found["seconds"] / 60, "minutes", "-", found["seconds"]),
        results.health(out / "xlnet", COMMAND),
    ]
    results.write("shakespeare_xlnet", rows)


LANGUAGE = ["--preset", "language_tiny"]
PARTS = {"gpt": (gpt, "30m"), "xlnet": (xlnet, "15m")}


def row(measure: str, value: float, unit: str, required: str, seconds: float) -> dict[str, Any]:
    """One measured figure of this benchmark."""
    return results.row(measure, round(value, 4), unit, required, seconds, COMMAND)


def once(file: Path, measure: Any) -> dict[str, float]:
    """A measurement, or the one that an earlier start has made."""
    if not file.exists():
        found = measure()
        file.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def split(data: Path, out: Path) -> tuple[str, str]:
    """The first 90 % and the rest, also as files."""
    text = b"".join(unpacked_blocks(next(data.glob("input.txt*")))).decode("utf-8")
    border = int(0.9 * len(text))
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train.txt", text[:border]), ("valid.txt", text[border:])):
        (out / name).write_text(part, encoding="utf-8", newline="\n")
    return text[:border], text[border:]


def heedful(folder: Path, budget: str, which: list[str], settings: dict[str, Any], valid: str) -> dict[str, float]:
    """Train with the command line, and measure."""
    sets = [f"--set={name}={value}" for name, value in settings.items()]
    files = ["--text", folder.parent / "train.txt", "--valid-text", folder.parent / "valid.txt"]
    command = [sys.executable, "-m", "heedful", "train", "language-model", *map(str, files)]
    command += ["--tokenizer", "characters", "--budget", budget, "--out", str(folder), *which]
    subprocess.run([*command, *sets], check=True)
    state = json.loads(max((folder / "run" / "checkpoints").glob("step-*/state.json")).read_text(encoding="utf-8"))
    model = load(folder)
    assert isinstance(model, LanguageModel)
    total, tokens = text_loss(model.model, np.array(model.tokenizer.encode(valid)), 8192)
    return {"loss": total / tokens, "seconds": state["elapsed"]}


def huggingface(train: str, valid: str) -> dict[str, float]:
    """nanoGPT's CPU recipe on transformers' model, with all cores."""
    from transformers import GPT2Config, GPT2LMHeadModel

    characters = sorted(set(train + valid))
    ids = torch.tensor([characters.index(each) for each in train])
    held_out = torch.tensor([characters.index(each) for each in valid])
    torch.manual_seed(1337)
    sizes = {"vocab_size": len(characters), "n_positions": CONTEXT, "n_embd": 128, "n_layer": 4, "n_head": 4}
    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **drops, bos_token_id=0, eos_token_id=0)).train()
    matrices = [each for each in model.parameters() if each.dim() >= 2]
    others = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    started = time.monotonic()
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = nanogpt_rate(step)
        starts = torch.randint(len(ids) - CONTEXT, (BATCH,))
        rows = torch.stack([ids[start : start + CONTEXT + 1] for start in starts])
        logits = model(rows[:, :-1]).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.monotonic() - started
    model.eval()
    total, tokens = 0.0, len(held_out) - 1
    with torch.inference_mode():
        for first in range(0, tokens, CONTEXT):
            window = held_out[first : first + CONTEXT + 1][None]
            logits = model(window[:, :-1]).logits[0]
            total += float(torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="sum"))
    return {"loss": total / tokens, "seconds": seconds}


def nanogpt_rate(step: int) -> float:
    """Warm-up over 100 steps to 1e-3, then a cosine down to 1e-4."""
    if step < 100:
        return 1e-3 * (step + 1) / 101
    return 1e-4 + 0.5 * (1 + math.cos(math.pi * (step - 100) / (STEPS - 100))) * 9e-4


if __name__ == "__main__":
    main()
