"""How many files the process may have open; every connection to a client is one."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.server.settings import ServerSettings

# Connections that are accepted in one turn of the event loop; a few turns pass until they are counted.
ACCEPTED_AT_ONCE = 4
# Files that the process has open besides client connections: its own, including those few, and those of each worker.
OWN_FILES, WORKER_FILES = 32, 3
# Seconds between two lines of the log about connections that could not be accepted.
PAUSE = 60.0


def connections_that_fit(settings: ServerSettings) -> int:
    """The number of connections wanted, or as many as open files allow, which is then reported."""
    wanted = settings.limits.connections
    others = OWN_FILES + WORKER_FILES * (settings.workers or available_cores())
    files = _allow_files(wanted + others)
    if files is None or files >= wanted + others:
        return wanted
    if files <= others:
        raise UserError(
            f"a process may open only {files:,} files here, and the server needs {others + 1:,}: raise that with "
            "`ulimit -n`, or start fewer --workers"
        )
    print(
        f"heedful: --max-connections is {files - others:,}, not {wanted:,}: a process may open only {files:,} files "
        "here; raise that with `ulimit -n`",
        file=sys.stderr,
        flush=True,
    )
    return files - others


def _allow_files(wanted: int) -> int | None:
    """Let the process open that many files, if it may; returns how many it may open, or None if there is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        except (ValueError, OSError):  # some systems have a second limit
            return soft
        return raised
    return soft


class AcceptFailures:
    """Handles what an event loop reports: connections that could not be accepted are logged now and then."""

    def __init__(self) -> None:
        self.told = -PAUSE

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take a report; the loop itself handles all others."""
        error = context.get("exception")
        if "socket" not in context or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif time.monotonic() - self.told >= PAUSE:
            self.told = time.monotonic()
            print(
                f"heedful: a connection could not be taken: {error.strerror}: it is tried again every second",
                file=sys.stderr,
                flush=True,
            )
