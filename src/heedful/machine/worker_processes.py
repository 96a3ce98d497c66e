"""Processes that work for this one, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from heedful.errors import UserError
from heedful.machine.child_imports import safe_child_imports
from heedful.machine.memory import keep_freed_memory


class WorkerProcesses:
    """This many processes, which start when there is work for them."""

    def __init__(self, count: int) -> None:
        self.others = set(multiprocessing.active_children())
        self.executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _start_worker)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a function called by one of them."""
        with safe_child_imports():  # this may start one
            return self.executor.submit(function, *arguments)

    def result(self, future: Future[Any]) -> Any:
        """Wait for the result of a call; a UserError if its process is gone."""
        try:
            return future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process ended unexpectedly, perhaps for lack of memory: try fewer --workers"
            ) from None

    def stop(self, *, at_once: bool) -> None:
        """Let them end, or with `at_once` end them because nobody waits for their results."""
        if at_once:
            for process in set(multiprocessing.active_children()) - self.others:
                process.terminate()
        self.executor.shutdown(wait=False, cancel_futures=True)


def _start_worker() -> None:
    """Keep freed memory, let Ctrl-C act on the main process alone, and end when that is gone, however it ended."""
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
