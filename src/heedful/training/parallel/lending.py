"""A whole model that computes with the weights of a spread one: each block borrows its own while it computes.

No process ever holds more than the parts outside the blocks, such as embeddings, and one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.blocks import CrossBlock, SelfBlock
from heedful.layers.relative_attention import RelativeBlock
from heedful.training.parallel.blocks import blocks_of
from heedful.training.parallel.world import World

Item = TypeVar("Item")
Result = TypeVar("Result")
# Some whole parameters, one at a time; all processes must ask for the same ones together.
Gather = Callable[[Sequence[str]], Iterator[tuple[str, Tensor]]]

# The methods by which models use blocks, and those of a layer inside them that is used by itself.
METHODS: dict[type[nn.Module], tuple[str, ...]] = {
    SelfBlock: ("forward", "prefill", "step"),
    CrossBlock: ("forward", "step"),
    RelativeBlock: ("forward", "step"),
}
INNER: dict[type[nn.Module], tuple[str, tuple[str, ...]]] = {
    CrossBlock: ("cross_attention", ("keys_values",)),
    RelativeBlock: ("attention", ("contents", "queries", "distances")),
}
# What the first process sends the others when they need not help any more.
DONE = -1


class Lender:
    """Lends a model, whose own parameters hold nothing, what it needs at the moment; a `Sharing` of its processes."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.world = world
        self.parameters = dict(model.named_parameters())
        for parameter in self.parameters.values():
            parameter.data = parameter.data.new_empty(0)
        blocks = blocks_of(model)
        self.units = _units(self.parameters, blocks)
        self._users = [0] * len(self.units)
        self._gather: Gather | None = None
        self._tells = False
        for unit, block in enumerate(blocks, 1):
            kind = type(block)
            self._attach(block, METHODS[kind], unit)
            if kind in INNER:
                name, methods = INNER[kind]
                self._attach(block.get_submodule(name), methods, unit)

    def __deepcopy__(self, memo: dict[int, Any]) -> Lender:
        """A view of the model borrows from the same lender."""
        return self

    def _attach(self, module: nn.Module, methods: tuple[str, ...], unit: int) -> None:
        # Through its class, not hooks or attributes: a copy of the module must borrow for itself.
        module.__class__ = _borrowing(type(module), methods)
        module.__dict__.update(_lender=self, _unit=unit)

    @contextmanager
    def lending(self, gather: Gather) -> Iterator[Lender]:
        """Inside the block, the model can compute, in all processes together; `each` and `by_first` say how."""
        self._gather = gather
        try:
            with self.lent(0):
                yield self
        finally:
            self._gather = None

    @contextmanager
    def lent(self, unit: int) -> Iterator[None]:
        """Inside the block, the parameters of a unit are there."""
        if not self._users[unit]:
            if self._tells:
                self._tell(unit)
            for name, whole in self._fetch(unit):
                self.parameters[name].data = whole
        self._users[unit] += 1
        try:
            yield
        finally:
            self._users[unit] -= 1
            if not self._users[unit]:
                for name in self.units[unit]:
                    parameter = self.parameters[name]
                    parameter.data = parameter.data.new_empty(0)

    def _fetch(self, unit: int) -> Iterator[tuple[str, Tensor]]:
        assert self._gather is not None
        # A parameter cannot take an inference tensor as its data.
        with torch.inference_mode(False), torch.no_grad():
            yield from self._gather(self.units[unit])

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What `work` gives for each item; all processes work on equally many, so they borrow the same together."""
        rank, size = self.world.rank, self.world.size
        turns = range(-(-len(items) // size))
        found = [_on_cpu(work(items[min(turn * size + rank, len(items) - 1)])) for turn in turns]
        everyones: list[list[Result]] = [[]] * size
        dist.all_gather_object(everyones, found)
        return [everyones[place % size][place // size] for place in range(len(items))]

    def by_first(self, work: Callable[[], Result]) -> Result:
        """What `work` gives in the first process, which tells the others what it borrows, as only it knows."""
        answer: list[Any] = [None, None]
        if self.world.leads:
            self._tells = True
            try:
                answer[0] = _on_cpu(work())
            except Exception as error:
                answer[1] = str(error)
                raise
            finally:
                self._tells = False
                self._tell(DONE)
                dist.broadcast_object_list(answer, 0)
        else:
            while (unit := self._tell(DONE)) != DONE:
                for _ in self._fetch(unit):
                    pass
            dist.broadcast_object_list(answer, 0)
            if answer[1] is not None:
                raise UserError(f"rank 0 failed: {answer[1]}")
        result: Result = answer[0]
        return result

    def _tell(self, unit: int) -> int:
        """Send a unit from the first process to all; return what it sent."""
        told = torch.tensor([unit])
        dist.broadcast(told, 0)
        return int(told)


def _units(parameters: dict[str, nn.Parameter], blocks: Sequence[nn.Module]) -> list[list[str]]:
    """The names of the parameters that are borrowed together: first those of no block, or of several."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    users: dict[str, list[int]] = {name: [] for name in parameters}
    for unit, block in enumerate(blocks, 1):
        for parameter in block.parameters():
            users[names[id(parameter)]].append(unit)
    units: list[list[str]] = [[] for _ in range(len(blocks) + 1)]
    for name, found in users.items():
        units[found[0] if len(found) == 1 else 0].append(name)
    return units


def _borrowing(kind: type[nn.Module], methods: tuple[str, ...]) -> type[nn.Module]:
    """A class whose methods borrow the parameters that they need."""

    def borrowing(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def borrow(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lender.lent(self._unit):
                return method(self, *args, **kwargs)

        return borrow

    return type(kind.__name__, (kind,), {name: borrowing(getattr(kind, name)) for name in methods})


def _on_cpu(result: Any) -> Any:
    """A result in a form that another process, which may not see the same device, can take."""
    if isinstance(result, Tensor):
        return result.cpu()
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(map(_on_cpu, result))
    return result
