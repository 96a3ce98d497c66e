"""Hugging Face's generate with a GPT2LMHeadModel."""

from __future__ import annotations

import time
from typing import Any

import torch
from protocol import serve, versions
from transformers import GPT2LMHeadModel

state: dict[str, Any] = {}


def load(model: str, threads: int) -> dict[str, Any]:
    """Load the model."""
    torch.set_num_threads(threads)
    state["model"] = GPT2LMHeadModel.from_pretrained(model, dtype=torch.float32).eval()
    return {"versions": versions("torch", "transformers")}


@torch.inference_mode()
def generate(prompt: list[int], length: int) -> dict[str, Any]:
    """Continue a text by so many tokens, always the likeliest; their score is computed after the time is taken."""
    given = torch.tensor([prompt])
    started = time.perf_counter()
    found = state["model"].generate(
        given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        num_beams=1,
        min_new_tokens=length,
        max_new_tokens=length,
    )
    seconds = time.perf_counter() - started
    tokens = found[0, len(prompt) :]
    logits = state["model"](found).logits[0, len(prompt) - 1 : -1]
    score = logits.log_softmax(-1).gather(1, tokens[:, None]).sum()
    return {"seconds": seconds, "tokens": tokens.tolist(), "score": float(score)}


if __name__ == "__main__":
    serve({"load": load, "generate": generate})
