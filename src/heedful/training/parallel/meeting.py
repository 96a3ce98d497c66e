"""Where the processes of a run meet: a part of their launcher's store that no earlier start has written to."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from heedful.errors import UserError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

POLL_SECONDS = 0.05


def meet(store: Store, rank: int, size: int, limit_seconds: float) -> Store:
    """The part of the store that belongs to this start of the run, once all of its processes are there.

    torchrun keeps its store when it restarts processes, with all that the earlier ones have written: that they are
    here, what they have done, at which address they can be reached. The number of the start would not do as a name,
    because nodes that stay and nodes that join count differently. So the first process makes up a name, and the others
    ask for it, each with a question that nobody has asked before.
    """
    from torch._C._distributed_c10d import PrefixStore

    meetings = PrefixStore("heedful", store)
    name = _call(meetings, size, limit_seconds) if rank == 0 else _ask(meetings, rank, limit_seconds)
    return PrefixStore(name, meetings)


def _call(store: Store, size: int, limit_seconds: float) -> str:
    """Answer all questions, old ones too, until everybody has arrived where the answers point."""
    name, missing = uuid4().hex, list(range(1, size))
    deadline = time.monotonic() + limit_seconds
    while missing:
        for rank in missing:
            if store.check([f"asking/{rank}"]):
                store.set(f"answers/{store.get(f'asking/{rank}').decode()}", name)
        missing = [rank for rank in missing if not store.check([f"{name}/here/{rank}"])]
        if missing and time.monotonic() > deadline:
            ranks = ", ".join(map(str, missing))
            raise UserError(f"rank {ranks} did not come to {_address()} within {limit_seconds:g} s of the start")
        time.sleep(POLL_SECONDS if missing else 0)
    store.set(f"{name}/all", "")
    return name


def _ask(store: Store, rank: int, limit_seconds: float) -> str:
    question, limit = uuid4().hex, timedelta(seconds=limit_seconds)
    store.set(f"asking/{rank}", question)
    try:
        store.wait([f"answers/{question}"], limit)
        name = store.get(f"answers/{question}").decode()
        store.set(f"{name}/here/{rank}", "")
        store.wait([f"{name}/all"], limit)
    except RuntimeError as error:
        raise UserError(
            f"rank {rank} did not meet the others at {_address()} within {limit_seconds:g} s of the start "
            f"({str(error).splitlines()[0][:120]}); where nodes come and go, torchrun needs "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment"
        ) from None
    return name


def _address() -> str:
    return f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
