"""Requests that take turns, each with its remaining work."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from heedful.server.messages import ModelRequest


class Waiting(Protocol):
    """A part of a request, which may have come in several."""

    @property
    def request(self) -> ModelRequest:
        """What is asked for."""


Item = TypeVar("Item", bound=Waiting)


class RoundRobin(Generic[Item]):
    """Requests that take turns, so that none waits for all of another; the parts of one share its turns."""

    def __init__(self) -> None:
        self._circle: dict[str, deque[Item]] = {}

    def __bool__(self) -> bool:
        return bool(self._circle)

    def __iter__(self) -> Iterator[Item]:
        """All parts, those of the request whose turn it is first."""
        return (item for items in self._circle.values() for item in items)

    def add(self, item: Item) -> None:
        """Take a part of a request."""
        self._circle.setdefault(_name(item.request), deque()).append(item)

    def remove(self, item: Item) -> None:
        """A part is done or given up."""
        items = self._circle[_name(item.request)]
        items.remove(item)
        if not items:
            del self._circle[_name(item.request)]

    def cancel(self, number: int) -> None:
        """Nobody is waiting for the part with that number any more."""
        for item in [each for each in self if each.request.number == number]:
            self.remove(item)

    def had(self, item: Item) -> None:
        """The request of that part has had its turn."""
        name = _name(item.request)
        if name in self._circle:
            self._circle[name] = self._circle.pop(name)


def _name(request: ModelRequest) -> str:
    return request.name or f"part {request.number}"
