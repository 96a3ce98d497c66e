"""Where open files are few, so are connections, and the log says so in a line."""

import asyncio
import errno
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from heedful.errors import UserError
from heedful.server.front import serve as serving
from heedful.server.front.open_files import (
    OWN_FILES,
    WORKER_FILES,
    AcceptFailures,
    connections_that_fit,
)
from heedful.server.settings import Limits, ServerSettings

resource = pytest.importorskip("resource")
SETTINGS = ServerSettings({}, workers=2, limits=Limits(connections=1000))
OTHERS = OWN_FILES + 2 * WORKER_FILES


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The limits of a system, which takes the soft one up to `most`."""
    limits = SimpleNamespace(soft=1024, hard=4096, most=10**6)

    def set_limit(which: int, wanted: tuple[int, int]) -> None:
        if wanted[0] > limits.most:
            raise ValueError("current limit exceeds maximum limit")
        limits.soft, limits.hard = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits.soft, limits.hard))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    return limits


@pytest.mark.parametrize("hard", [4096, resource.RLIM_INFINITY])
def test_the_limit_is_raised_to_what_is_wanted(allowed, hard: int, capsys) -> None:
    allowed.hard = hard
    assert connections_that_fit(SETTINGS) == 1000 and allowed.soft == 1000 + OTHERS
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("hard", "most"), [(900, 10**6), (resource.RLIM_INFINITY, 1000)])
def test_connections_are_fewer_where_it_cannot_be_and_that_is_said(allowed, hard: int, most: int, capsys) -> None:
    allowed.soft, allowed.hard, allowed.most = 900, hard, most
    assert connections_that_fit(SETTINGS) == 900 - OTHERS
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"heedful: --max-connections is {900 - OTHERS}, not 1,000: a process may open only 900 files"
    )


def test_too_few_files_for_any_connection_are_refused(allowed) -> None:
    allowed.soft = allowed.hard = OTHERS
    with pytest.raises(UserError, match=f"may open only {OTHERS} files here, and the server needs {OTHERS + 1}"):
        connections_that_fit(SETTINGS)


async def nothing(scope, receive, send) -> None:
    raise AssertionError("nothing is asked")


def serve_waiting_clients(number: int, limits: Limits, files: int) -> None:
    """Let a server take so many clients that wait already, with so many files more, until it has or cannot."""

    async def run() -> None:
        with ExitStack() as stack:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=number))
            address = listening.getsockname()
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(number)]
            stack.enter_context(most_files(max(client.fileno() for client in clients) + 1 + files))
            config = serving._config(nothing, replace(SETTINGS, limits=limits))
            server, failures = serving._Server(config, SimpleNamespace(closing=False)), AcceptFailures()
            asyncio.get_running_loop().set_exception_handler(failures)
            task = asyncio.create_task(server.serve([listening]))
            async with asyncio.timeout(30):
                while failures.told < 0 and len(turned_away(clients)) < number - limits.connections:
                    await asyncio.sleep(0.02)
            server.should_exit = server.force_exit = True
            await task

    asyncio.run(run())


@contextmanager
def most_files(number: int) -> Iterator[None]:
    """Allow this process files up to that number for a while."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def turned_away(clients: list[socket.socket]) -> list[socket.socket]:
    """Those that are told something, which can only be that there is no room."""
    return select.select(clients, [], [], 0)[0]


def test_a_crowd_finds_the_files_that_are_kept_for_it(capsys, caplog) -> None:
    own = 16  # what a server has open besides, which it has not here
    serve_waiting_clients(300, replace(SETTINGS.limits, connections=7), 7 + OWN_FILES - own)
    assert not capsys.readouterr().err and not caplog.records


def test_connections_that_cannot_be_taken_are_one_line(capsys, caplog) -> None:
    serve_waiting_clients(60, replace(SETTINGS.limits, connections=59), 0)
    (line,) = capsys.readouterr().err.splitlines()
    why = os.strerror(errno.EMFILE)
    assert line == f"heedful: a connection could not be taken: {why}: it is tried again every second"
    assert not caplog.records


def test_other_troubles_of_the_loop_are_told_as_ever(caplog) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        AcceptFailures()(loop, {"message": "a task was lost", "exception": OSError(5, "x")})

    asyncio.run(run())
    assert "a task was lost" in caplog.text
