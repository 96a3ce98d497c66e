"""Counts the bytes of live tensors by kind, and the bytes sent by axis, while a step runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = ("parameters", "gradients", "optimizer", "activations", "buffers")
# Operations of FSDP and of process groups: what they work on is kept neither by a layer nor by the optimizer.
BUFFER_NAMESPACES = {"c10d", "fsdp", "_c10d_functional"}


@dataclass
class _Block:
    """Memory that holds a tensor."""

    serial: int
    size: int
    alive: weakref.ref[Any]


@dataclass
class LiveBytes(TorchDispatchMode):
    """While entered, follows all tensors that are made, on any device and also without memory.

    `axes` maps the name of a process group to the axis that it lies along and its number of processes.
    """

    axes: dict[str, tuple[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.begin()

    def begin(self) -> None:
        """Forget all that was followed so far."""
        self.sent: dict[str, int] = {}
        self._blocks: dict[int, _Block] = {}
        self._kinds: list[str] = []
        self._settled: set[int] = set()
        self._changes: list[tuple[int, int]] = []
        self._default = "activations"

    def take(self, tensors: Iterable[Tensor | None], kind: str) -> None:
        """Say what kind of memory some tensors have, whether it was there before or is new."""
        for tensor in tensors:
            if tensor is not None:
                serial = self._follow(_local(tensor))
                self._kinds[serial] = kind
                self._settled.add(serial)

    @contextmanager
    def default(self, kind: str) -> Iterator[None]:
        """Let what is made inside the block be of a kind, unless something else says otherwise."""
        before, self._default = self._default, kind
        try:
            yield
        finally:
            self._default = before

    @contextmanager
    def following(self) -> Iterator[None]:
        """Enter the mode, and also see what is resized in place."""
        resize = torch.UntypedStorage.resize_

        def followed(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
            resize(storage, size)
            block = self._blocks.get(id(storage))
            if block is not None:
                self._changes.append((block.serial, size - block.size))
                block.size = size
            return storage

        torch.UntypedStorage.resize_ = followed  # type: ignore[method-assign,assignment]
        try:
            with self:
                yield
        finally:
            torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign]

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # the calls that it makes in turn come through here
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and isinstance(args[0], FakeTensor):
            return 1  # a look at a value that is not there: the answer is always yes
        result = function(*args, **kwargs)
        tensors = [each for each in tree_leaves(result) if isinstance(each, Tensor)]
        serials = [self._follow(each) for each in tensors]
        if function.namespace in BUFFER_NAMESPACES:
            given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
            for serial in [*serials, *(self._follow(each) for each in given)]:
                if serial not in self._settled:
                    self._kinds[serial] = "buffers"
            self._count(function, args, kwargs)
        return result

    def _follow(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        key = id(storage)
        block = self._blocks.get(key)
        if block is not None and block.alive() is storage:
            return block.serial
        serial, size = len(self._kinds), storage.nbytes()
        self._kinds.append(self._default)
        self._blocks[key] = _Block(serial, size, weakref.ref(storage, self._forget(key, serial)))
        self._changes.append((serial, size))
        return serial

    def _forget(self, key: int, serial: int) -> Callable[[Any], None]:
        def forget(reference: Any) -> None:
            block = self._blocks.get(key)
            if block is not None and block.serial == serial:
                del self._blocks[key]
                self._changes.append((serial, -block.size))

        return forget

    def _count(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Add up what this process sends in a collective operation, if that uses rings."""
        group = next((each for each in _group_names(args, kwargs) if each in self.axes), None)
        if group is None:
            return
        name, (axis, size) = function._schema.name, self.axes[group]
        tensors = [each for each in tree_leaves(args) if isinstance(each, Tensor)]
        whole = max(each.numel() * each.element_size() for each in tensors)
        if "_c10d_functional" in name and "all_gather" in name:
            whole *= size  # the argument is a share of the result
        rounds = 2 if "allreduce" in name or "all_reduce" in name else 1
        self.sent[axis] = self.sent.get(axis, 0) + rounds * whole * (size - 1) // size

    def peak(self) -> dict[str, int]:
        """The bytes of each kind at the moment when their total was largest."""
        kinds = dict.fromkeys(KINDS, 0)
        most, at_most = -1, dict(kinds)
        total = 0
        for serial, change in self._changes:
            total += change
            kinds[self._kinds[serial]] += change
            if total > most:
                most, at_most = total, dict(kinds)
        return at_most


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _group_names(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[str]:
    """The arguments of an operation that may name its process group."""
    for each in [*args, *kwargs.values()]:
        if isinstance(each, torch.ScriptObject) and "ProcessGroup" in str(each._type()):
            yield dist.ProcessGroup.unbox(each).group_name
        elif isinstance(each, str):
            yield each
