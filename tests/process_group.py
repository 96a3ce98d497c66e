"""Real processes that compute together through gloo, for the tests of what is spread over several of them."""

import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from heedful.training.parallel.world import Processes

Work = Callable[..., Any]


def new_store() -> dist.TCPStore:
    """A store as a launcher keeps it for its processes."""
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def run_in_processes(
    size: int, folder: Path, work: Work, *arguments: Any, store: dist.TCPStore | None = None, late: int | None = None
) -> list[Any]:
    """What a function, to be found by its name, gives in each of `size` processes, in the order of the ranks.

    It is called with the world that the processes make up. The rank `late` starts a while after the others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = store or new_store()
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(
            target=_one, args=(rank, size, store.port, str(folder), rank == late, work, arguments), daemon=True
        )
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    for process in processes:
        if process.is_alive():
            process.kill()
    files = [folder / f"{rank}.json" for rank in range(size)]
    results = [json.loads(file.read_text()) if file.exists() else {"error": "no result"} for file in files]
    errors = [f"rank {rank}: {each['error']}" for rank, each in enumerate(results) if "error" in each]
    assert not errors, "\n".join(errors)
    return [each["result"] for each in results]


def _one(rank: int, size: int, port: int, folder: str, late: bool, work: Work, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    time.sleep(2.0 * late)
    places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    os.environ.update(places, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    os.environ["LOCAL_WORLD_SIZE"] = str(size)
    world = Processes("cpu", 60.0)
    try:
        answer = {"result": work(world, *arguments)}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    Path(folder, f"{rank}.json").write_text(json.dumps(answer))
    world.leave()
