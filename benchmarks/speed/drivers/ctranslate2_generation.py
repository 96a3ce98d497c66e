"""CTranslate2's Generator; the names of its tokens are their numbers."""

from __future__ import annotations

import time
from typing import Any

import ctranslate2
from protocol import serve, versions

state: dict[str, Any] = {}


def load(model: str, precision: str, threads: int) -> dict[str, Any]:
    """Load the model."""
    state["generator"] = ctranslate2.Generator(model, compute_type=precision, inter_threads=1, intra_threads=threads)
    return {"versions": versions("ctranslate2")}


def generate(prompt: list[int], length: int) -> dict[str, Any]:
    """Continue a text by so many tokens, always the likeliest."""
    named = [str(token) for token in prompt]
    started = time.perf_counter()
    (found,) = state["generator"].generate_batch(
        [named],
        beam_size=1,
        length_penalty=0.0,
        min_length=length,
        max_length=length,
        include_prompt_in_result=False,
        return_scores=True,
    )
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "tokens": found.sequences_ids[0][:length], "score": found.scores[0]}


if __name__ == "__main__":
    serve({"load": load, "generate": generate})
