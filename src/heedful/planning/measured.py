"""Counts the bytes of a step of the real model, really spread over processes, on a device without memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh

from heedful.layers.masks import whole_lengths
from heedful.models.families import FAMILIES
from heedful.models.unfilled import Unfilled
from heedful.planning.layouts import Layout
from heedful.planning.live_bytes import LiveBytes
from heedful.planning.planned_device import RealTables, fused_attention, planned_device
from heedful.planning.shape import shape_of, with_layers
from heedful.planning.subject import Subject
from heedful.tasks.cross_entropy import linear_cross_entropy, output_cross_entropy
from heedful.training.config import ParallelConfig
from heedful.training.optimizer import make_optimizer
from heedful.training.parallel.apply import AXES as MESH_AXES
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.sharded import ShardedAverage
from heedful.training.parallel.sharded_gradients import ShardedGradients
from heedful.training.step import TrainingStep

# Every other layer may differ.
FEW_LAYERS = 2


@dataclass(frozen=True)
class Measured:
    """What a step took: bytes per kind at the peak, bytes that a GPU sent per axis, and how long measuring took."""

    memory: dict[str, int]
    sent: dict[str, int]
    seconds: float

    @property
    def total(self) -> int:
        """All bytes at the peak."""
        return sum(self.memory.values())


def measure(subject: Subject, layout: Layout) -> Measured:
    """Measure a step of a layout on a device without memory."""
    began = time.monotonic()
    memory, sent = measure_step(subject, layout, planned_device())
    return Measured(memory, sent, time.monotonic() - began)


def measure_step(subject: Subject, layout: Layout, device: torch.device) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes per kind at the peak and bytes sent per axis, of a step on one of the GPUs of a layout."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=layout.gpus)
    try:
        mesh = make_mesh(parallel_config(layout), device.type)
        with _without_memory(device):
            return _counted(subject, layout, mesh)
    finally:
        dist.destroy_process_group()


@contextmanager
def _without_memory(device: torch.device) -> Iterator[None]:
    with ExitStack() as entered:
        entered.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        entered.enter_context(RealTables())  # type: ignore[no-untyped-call]
        # Torch has threads only for the devices that it knew when this process computed its first gradient.
        entered.enter_context(torch.autograd.set_multithreading_enabled(False))
        if device.type != "cpu":
            entered.enter_context(fused_attention())
        yield


def parallel_config(layout: Layout) -> ParallelConfig:
    """A layout as the settings of a run."""
    return ParallelConfig(layout.replicate, layout.shard, layout.tensor, activation_checkpointing=layout.recompute)


class Rehearsal:
    """A model with all that a training step needs, spread over the processes of a mesh."""

    def __init__(self, subject: Subject, layout: Layout, mesh: DeviceMesh) -> None:
        training = subject.training
        with torch.device(mesh.device_type):
            with Unfilled(sys.maxsize):  # nothing depends on the values
                self.model: nn.Module = FAMILIES[subject.family].build(subject.model)
            self.batch = full_batch(subject, layout.sequences)
        step: TrainingStep[Any] = TrainingStep(self.model.train(), _loss)
        parallelize(step, self.model, mesh, parallel_config(layout), bf16=subject.precision == "bf16")
        self.gradients: ShardedGradients[Any] = ShardedGradients(step, mesh)
        self.optimizer = make_optimizer(self.model, training.optimizer)
        self.average = ShardedAverage(self.model, training.ema_decay) if training.ema_decay else None
        self.clip_norm = training.optimizer.clip_norm
        # From the second part on, there are gradients of earlier ones: two parts stand for any larger number.
        self.parts = min(layout.parts, 2)

    def step(self) -> None:
        """Take a step."""
        self.compute()
        self.update()

    def compute(self) -> None:
        """The forward and backward pass of each part."""
        self.gradients.compute([(number, self.batch, True) for number in range(self.parts)], 1, 1)

    def update(self) -> None:
        """What follows the gradients."""
        self.gradients.clip(self.clip_norm)
        self.optimizer.step()
        if self.average:
            self.average.update(1)

    def first_update(self) -> None:
        """Let the optimizer create what it creates in its first step."""
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.update()
        self.optimizer.zero_grad()

    def counted_step(self, live: LiveBytes) -> None:
        """Take a step while its bytes are counted by kind."""
        live.begin()
        live.take(self.model.parameters(), "parameters")
        live.take([*self.model.buffers(), *self.batch], "buffers")
        live.take(self.optimizer_state(), "optimizer")
        with live.following():
            self.compute()
            live.take((each.grad for each in self.model.parameters()), "gradients")
            with live.default("optimizer"):
                self.update()

    def optimizer_state(self) -> list[Tensor]:
        """All tensors that the optimizer and the moving average keep."""
        states = self.optimizer.state.values()
        kept = [each for state in states for each in state.values() if isinstance(each, Tensor)]
        return kept + (list(self.average.tensors.values()) if self.average else [])


def _counted(subject: Subject, layout: Layout, mesh: DeviceMesh) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of a step that is not the first.

    Torch works out once how each operation is spread, and makes tensors for that too. So a model of few layers takes
    a step first: it has all operations except those of the update, which take all parameters at once.
    """
    few = replace(subject, model=with_layers(subject.family, subject.model, FEW_LAYERS))
    live = LiveBytes({mesh.get_group(axis).group_name: (axis, mesh[axis].size()) for axis in MESH_AXES})
    Rehearsal(few, layout, mesh).counted_step(live)
    rehearsal = Rehearsal(subject, layout, mesh)
    rehearsal.first_update()
    rehearsal.counted_step(live)
    sent = {axis: live.sent.get(axis, 0) * layout.parts // rehearsal.parts for axis in MESH_AXES}
    return live.peak(), sent


def full_batch(subject: Subject, sequences: int) -> list[Tensor]:
    """This many sequences of the greatest length, without padding: the inputs of the model, and last the labels."""
    model, family = subject.model, subject.family
    targets = shape_of(family, model).targets
    labels = torch.zeros(sequences * targets, dtype=torch.long)
    if family == "vision":
        return [torch.zeros(sequences, model.channels, *model.image_size), labels]
    ids = [torch.zeros(sequences, model.max_length, dtype=torch.long) for _ in range(2)]
    return [*ids, labels] if family == "encoder_decoder" else [ids[0], labels]


def _loss(model: Any, batch: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The loss as the tasks compute it, but over a number of rows known beforehand."""
    *inputs, labels = batch
    hidden = model.hidden(*inputs)
    if hasattr(model, "transform"):  # of encoder-only models
        hidden = model.features(hidden, whole_lengths(inputs[0]))
    rows = hidden.flatten(0, -2)[: len(labels)]
    if hasattr(model, "transform"):
        rows = model.transform(rows)
    if hasattr(model.output, "cross_entropy"):  # its layer is split over the vocabulary
        return output_cross_entropy(model.output, rows, labels, 0.0)
    # Parameters without memory are of another class, for which `output_cross_entropy` would not take its usual path.
    return linear_cross_entropy(rows, model.output.weight, labels, 0.0, model.output.bias)
