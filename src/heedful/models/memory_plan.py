"""How large a batch, or a decoding cache, fits in memory."""

from __future__ import annotations

from typing import Protocol

from heedful.machine.cores import available_cores
from heedful.machine.devices import Device
from heedful.machine.memory import memory_limit


class ActivationMemory(Protocol):
    """The settings of a model, which know how much memory its training takes."""

    def activation_bytes(self) -> int:
        """Bytes that one token needs between the forward and the backward pass."""


class DecodingMemory(Protocol):
    """A model that knows how much memory its decoding takes."""

    @property
    def device(self) -> Device:
        """Where the model computes."""

    def decoding_bytes(self, rows: int, length: int) -> int:
        """Bytes of decoding state that a sentence takes, with this many rows, and this many tokens on either side."""


# Target positions in a slot of the decoding cache, for sources of up to 64 subwords and 50 more.
SLOT_LENGTH = 120


def free_memory(device: Device) -> int:
    """Bytes that may be allocated on a device."""
    if device.type != "cuda":
        return memory_limit()
    import torch

    return torch.cuda.mem_get_info()[0]


def tokens_that_fit(model: ActivationMemory, parameters: int, device: Device, workers: int) -> int:
    """Tokens whose activations fit in half of the memory that so many parameters leave free."""
    # Parameters, their gradient, two moments, a moving average, and the gradient that each worker makes.
    free = free_memory(device) - (5 + workers) * 4 * parameters
    return max(256, int(0.5 * free / model.activation_bytes()))


def sentences_that_fit(model: DecodingMemory, rows: int, longest: int | None) -> int:
    """Sentences of `rows` hypotheses, of up to `longest` tokens each if that is set, whose caches fit in
    `memory_share`."""
    sentence = model.decoding_bytes(rows, max(SLOT_LENGTH, longest or 0))
    return max(1, int(memory_share(model.device) / sentence))


def memory_share(device: Device) -> float:
    """Bytes: a quarter of what each of the processes that compute on a device may take.

    A cache that grows takes up to three times its plan while it is copied to one of twice the room.
    """
    return 0.25 * free_memory(device) / (available_cores() if device.type == "cpu" else 1)
