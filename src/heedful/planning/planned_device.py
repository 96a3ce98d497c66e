"""A device that exists only in plans: tensors on it have sizes but no memory, and code takes the paths of a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NAME = "planned"


class Event:
    """A point in a queue of work that is never done."""

    def record(self, stream: Any = None) -> None:
        """Nothing is waited for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing is waited for."""

    def synchronize(self) -> None:
        """Nothing is waited for."""


class Stream:
    """A queue of work that is never done."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing is waited for."""

    def wait_event(self, event: Any) -> None:
        """Nothing is waited for."""

    def record_event(self, event: Any = None) -> Event:
        """A point in this queue."""
        return event or Event()


class _Module(backend_registration._DummyBackendModule):
    """What torch needs from the module of a device (`torch.planned`)."""

    def __init__(self) -> None:
        self.Stream, self.Event = Stream, Event

    def current_stream(self, device: Any = None) -> Stream:
        return Stream()

    def stream(self, stream: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def set_device(self, device: Any) -> None:
        pass

    def synchronize(self, device: Any = None) -> None:
        pass


@cache
def planned_device() -> torch.device:
    """The device, which torch knows by its name from now on; it takes torch's slot for third-party devices."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    return torch.device(NAME, 0)


@contextlib.contextmanager
def fused_attention() -> Iterator[None]:
    """Let attention be that of a GPU's kernel, which keeps one number per row instead of the scores.

    By default, torch writes attention out on a device that it does not know. The function itself is replaced: a mode
    that sees its calls is inactive while gradients, and with them recomputed activations, are computed.
    """
    before = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = _attend  # type: ignore[assignment]
    try:
        yield
    finally:
        F.scaled_dot_product_attention = before


def _attend(
    query_BHTK: Tensor,
    key_BHSK: Tensor,
    value_BHSV: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    bias = mask
    if mask is not None:
        if mask.dtype == torch.bool:  # as torch does before it calls the kernel
            bias = torch.zeros_like(mask, dtype=query_BHTK.dtype).masked_fill_(~mask, -torch.inf)
        assert bias is not None
        bias = bias.expand(*query_BHTK.shape[:3], key_BHSK.shape[2])
    attend = torch.ops.aten._scaled_dot_product_efficient_attention
    output: Tensor = attend(query_BHTK, key_BHSK, value_BHSV, bias, True, dropout_p, is_causal, scale=scale)[0]
    return output


class RealTables(TorchDispatchMode):
    """While entered, above FakeTensorMode, tensors that have values keep them, such as the tables of process meshes.

    A value that is not there is read as 0: while a model is built, that means that no number was drawn out of bounds.
    """

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if tensors and all(type(each) is Tensor and each.device.type == "cpu" for each in tensors):
            with unset_fake_temporarily():
                return function(*args, **kwargs)
        if function is torch.ops.aten._local_scalar_dense.default:
            return 0
        return function(*args, **kwargs)
