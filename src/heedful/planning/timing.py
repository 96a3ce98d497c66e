"""A model of the time that a step takes, from its operations and its traffic."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.planning.flops import Flops
from heedful.planning.layouts import Layout

# GPUs per machine, and how many times faster they reach each other than GPUs of other machines.
MACHINE_GPUS, MACHINE_SPEED = 8, 8
SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)
class Hardware:
    """What each GPU can do: operations and bits sent per second, and bytes of memory."""

    memory: float
    flops: float
    network: float

    def assumptions(self) -> list[str]:
        """What the time is computed from, in words."""
        return [
            f"each GPU computes at {self.flops / 1e12:,.0f} TFLOP/s, whatever the shapes are",
            f"each GPU sends {self.network / 1e9:,.0f} Gbit/s to other machines, and {MACHINE_SPEED} times as much "
            f"within its machine of {MACHINE_GPUS}",
            "tensor neighbours come first within a machine, then stages, then shards, then copies",
            "traffic of shards and copies goes on while others compute; that of tensor and pipeline, and of copies of "
            "stages, is waited for",
            "collective operations go in rings at full speed; reading data, checkpoints and failures take no time",
        ]


def step_seconds(flops: Flops, tokens_per_part: int, layout: Layout, sent: dict[str, int], hardware: Hardware) -> float:
    """Seconds of a step of all GPUs."""
    operations = flops.total(layout.recompute) * tokens_per_part * layout.parts * layout.copies / layout.gpus
    # Stages wait for the first part to arrive and for the last one to come back.
    waiting = (layout.parts + layout.pipeline - 1) / layout.parts
    seconds = {axis: 8 * size / _speed(axis, layout, hardware) for axis, size in sent.items()}
    computing = operations / hardware.flops * waiting + seconds["tensor"] + seconds["pipeline"]
    sums = seconds["shard"] + seconds["replicate"]
    # Copies of stages sum their gradients when all parts have come back.
    return computing + sums if layout.pipeline > 1 else max(computing, sums)


def _speed(axis: str, layout: Layout, hardware: Hardware) -> float:
    """Bits per second along an axis: the machine's own if all GPUs along it are in one."""
    reach = 1
    for name in ("tensor", "pipeline", "shard", "replicate"):
        reach *= getattr(layout, name)
        if name == axis:
            break
    return hardware.network * (MACHINE_SPEED if reach <= MACHINE_GPUS else 1)
