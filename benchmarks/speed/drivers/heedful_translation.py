"""heedful's translation: as many processes with one thread each as there are cores, as `heedful translate` has."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from protocol import serve, versions

from heedful.decoding import DecodingOptions, Request, decode
from heedful.layers.int8_linear import with_int8_weights
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.machine.memory import keep_freed_memory
from heedful.model_folder import load_model_folder
from heedful.tasks.translation.lines import CHUNK_LINES

state: dict[str, Any] = {}


def load(model: str, workers: int, precision: str) -> dict[str, Any]:
    """Start the workers and load the model in each; with one worker it is loaded here."""
    state["pool"], state["workers"] = None, workers
    if workers > 1:
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _load_here, (model, precision))
        # Each waits a little, so that no worker takes two of them.
        list(pool.map(time.sleep, [0.5] * workers))
        state["pool"] = pool
    else:
        _load_here(model, precision)
    return {"versions": versions("torch", "heedful")}


def translate(sources: list[list[int]], batch: int, beam: int, shortest: int, longest: int) -> dict[str, Any]:
    """Translate in chunks, as lines are; few are shared by the workers alike."""
    started = time.perf_counter()
    size = min(CHUNK_LINES, -(-len(sources) // state["workers"]))
    chunks = [sources[first : first + size] for first in range(0, len(sources), size)]
    options = DecodingOptions(beam=beam, length_penalty=0.0, min_length=shortest, max_length=longest)
    here = partial(_translate_here, batch=batch, options=options)
    found = state["pool"].map(here, chunks) if state["pool"] else map(here, chunks)
    outputs = [ids for chunk in found for ids in chunk]
    return {"seconds": time.perf_counter() - started, "outputs": outputs}


def _load_here(model: str, precision: str) -> None:
    keep_freed_memory()
    state["model"] = load_model_folder(Path(model)).network
    if precision == "int8":
        with_int8_weights(state["model"])


def _translate_here(sources: list[list[int]], batch: int, options: DecodingOptions) -> list[list[int]]:
    requests = [Request(number, source) for number, source in enumerate(sources)]
    with one_thread(), flushed_denormals():
        found = {each.index: each.hypotheses[0].tokens for each in decode(state["model"], requests, options, batch)}
    return [found[number] for number in range(len(sources))]


if __name__ == "__main__":
    serve({"load": load, "translate": translate})
