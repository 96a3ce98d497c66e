"""Real processes that compute together through gloo, for the tests of what is spread over several of them."""

import json
import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

Work = Callable[..., Any]


def run_in_processes(size: int, folder: Path, work: Work, *arguments: Any) -> list[Any]:
    """What a function, to be found by its name, gives in each of `size` processes, in the order of the ranks."""
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_one, args=(rank, size, str(folder), work, arguments), daemon=True)
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


def _one(rank: int, size: int, folder: str, work: Work, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = dist.FileStore(str(Path(folder, "store")), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    try:
        answer = {"result": work(rank, size, *arguments)}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    Path(folder, f"{rank}.json").write_text(json.dumps(answer))
    dist.destroy_process_group()
