"""heedful's engine with a language model."""

from __future__ import annotations

import time
from typing import Any

from protocol import serve, versions

import heedful
from heedful.decoding import DecodingOptions, Request, decode
from heedful.machine.memory import keep_freed_memory

state: dict[str, Any] = {}


def load(model: str, precision: Any, threads: int) -> dict[str, Any]:
    """Load the model."""
    keep_freed_memory()
    state["model"] = heedful.load(model, engine="core", precision=precision).model
    state["model"].threads = threads
    return {"versions": versions("heedful")}


def generate(prompt: list[int], length: int) -> dict[str, Any]:
    """Continue a text by so many tokens, always the likeliest."""
    options = DecodingOptions(beam=1, length_penalty=0.0, min_length=length, max_length=length)
    started = time.perf_counter()
    (found,) = decode(state["model"], [Request(0, prompt)], options, 1)
    seconds = time.perf_counter() - started
    best = found.hypotheses[0]
    return {"seconds": seconds, "tokens": best.tokens, "score": sum(best.token_scores[:length])}


if __name__ == "__main__":
    serve({"load": load, "generate": generate})
