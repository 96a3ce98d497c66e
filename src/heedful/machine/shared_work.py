"""Work that the processes of a run do together: each does a part, or the first does it for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Sharing(Protocol):
    """Processes that work together; all make the same calls in the same order, and get the same results."""

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What `work` gives for each item; every process works on some of them."""

    def by_first(self, work: Callable[[], Result]) -> Result:
        """What `work` gives in the first process; the others help it with what they have."""


_sharing: ContextVar[Sharing | None] = ContextVar("sharing", default=None)


@contextmanager
def shared_work(sharing: Sharing | None) -> Iterator[None]:
    """Let `side_by_side` and `by_first`, in this thread, work together with other processes; with None, alone."""
    token = _sharing.set(sharing)
    try:
        yield
    finally:
        _sharing.reset(token)


def current_sharing() -> Sharing | None:
    """The processes that work together with this one, if there are any."""
    return _sharing.get()


def by_first(work: Callable[[], Result]) -> Result:
    """What `work` gives, when it might go differently in other processes, as decoding or sampling does."""
    sharing = _sharing.get()
    return work() if sharing is None else sharing.by_first(work)
