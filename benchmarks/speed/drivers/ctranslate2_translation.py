"""CTranslate2 with a model that heedful has exported."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ctranslate2
from protocol import serve, versions

state: dict[str, Any] = {}


def load(model: str, inter_threads: int, intra_threads: int, precision: str) -> dict[str, Any]:
    """Load the model and its vocabulary."""
    state["names"] = json.loads(Path(model, "shared_vocabulary.json").read_text(encoding="utf-8"))
    state["ids"] = {name: number for number, name in enumerate(state["names"])}
    state["translator"] = ctranslate2.Translator(
        model, compute_type=precision, inter_threads=inter_threads, intra_threads=intra_threads
    )
    return {"versions": versions("ctranslate2")}


def translate(sources: list[list[int]], batch: int, beam: int, shortest: int, longest: int) -> dict[str, Any]:
    """Translate all at once; it sorts by length and cuts batches itself."""
    named = [[state["names"][token] for token in source] for source in sources]
    started = time.perf_counter()
    found = state["translator"].translate_batch(
        named,
        max_batch_size=batch,
        beam_size=beam,
        length_penalty=0.0,
        min_decoding_length=shortest,
        max_decoding_length=longest + 1,  # which counts the end
    )
    seconds = time.perf_counter() - started
    outputs = [[state["ids"][name] for name in each.hypotheses[0][:longest]] for each in found]
    return {"seconds": seconds, "outputs": outputs}


if __name__ == "__main__":
    serve({"load": load, "translate": translate})
