"""heedful: its engine with a thread for each core, or torch in as many processes, as `heedful translate` has them."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, Literal

from protocol import serve, versions

import heedful
from heedful.decoding import DecodingOptions, Request, decode
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.machine.memory import keep_freed_memory
from heedful.tasks.translation.lines import CHUNK_LINES, CHUNK_LINES_OF_CORE

state: dict[str, Any] = {}


def load(model: str, workers: int, precision: str, engine: Literal["core", "torch"] = "core") -> dict[str, Any]:
    """Load the model, with torch in each of the workers, which are started for that."""
    state["pool"], state["workers"] = None, workers
    if engine == "core":
        _load_here(model, precision, engine)
        state["model"].threads, state["workers"], state["chunk"] = workers, 1, CHUNK_LINES_OF_CORE
        return {"versions": versions("heedful")}
    state["chunk"] = CHUNK_LINES
    if workers > 1:
        context, arguments = multiprocessing.get_context("spawn"), (model, precision, engine)
        state["pool"] = ProcessPoolExecutor(workers, context, _load_here, arguments)
        # Each waits a little, so that no worker takes two of them.
        list(state["pool"].map(time.sleep, [0.5] * workers))
    else:
        _load_here(model, precision, engine)
    return {"versions": versions("torch", "heedful")}


def translate(sources: list[list[int]], batch: int, beam: int, shortest: int, longest: int) -> dict[str, Any]:
    """Translate in chunks, as lines are; few are shared by the workers alike."""
    started = time.perf_counter()
    size = min(state["chunk"], -(-len(sources) // state["workers"]))
    chunks = [sources[first : first + size] for first in range(0, len(sources), size)]
    options = DecodingOptions(beam=beam, length_penalty=0.0, min_length=shortest, max_length=longest)
    here = partial(_translate_here, batch=batch, options=options)
    found = state["pool"].map(here, chunks) if state["pool"] else map(here, chunks)
    outputs = [ids for chunk in found for ids in chunk]
    return {"seconds": time.perf_counter() - started, "outputs": outputs}


def _load_here(model: str, precision: Any, engine: Any) -> None:
    keep_freed_memory()
    state["model"] = heedful.load(model, engine=engine, precision=precision).model


def _translate_here(sources: list[list[int]], batch: int, options: DecodingOptions) -> list[list[int]]:
    requests = [Request(number, source) for number, source in enumerate(sources)]
    with one_thread(), flushed_denormals():
        found = {each.index: each.hypotheses[0].tokens for each in decode(state["model"], requests, options, batch)}
    return [found[number] for number in range(len(sources))]


if __name__ == "__main__":
    serve({"load": load, "translate": translate})
