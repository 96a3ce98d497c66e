"""Spreading a model over processes from outside: sharding, split layers, recomputed activations, compiled blocks."""

from __future__ import annotations

from datetime import timedelta

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import _set_pg_timeout
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from heedful.layers.relative_attention import RelativeBlock
from heedful.training.config import ParallelConfig
from heedful.training.parallel.blocks import blocks_of, prepare_blocks
from heedful.training.parallel.placements import Placement
from heedful.training.parallel.tensor import split_layers

AXES = ("replicate", "shard", "tensor")


def make_mesh(config: ParallelConfig, device_type: str, timeout_seconds: float | None = None) -> DeviceMesh:
    """The processes of this run by the axes `AXES`; those next to each other share the layers of a copy.

    With a timeout, they wait for each other no longer than that.
    """
    sizes = (config.replicate or 1, config.shard or 1, config.tensor or 1)
    mesh = init_device_mesh(device_type, sizes, mesh_dim_names=AXES)
    if timeout_seconds is not None:
        for group in mesh.get_all_groups():
            _set_pg_timeout(timedelta(seconds=timeout_seconds), group)
    return mesh


def parallelize(
    step: nn.Module, model: nn.Module, mesh: DeviceMesh, config: ParallelConfig, bf16: bool = False
) -> dict[str, Placement]:
    """Spread `model` over the processes of `mesh`, in place; `step` is the module whose call computes a whole part.

    `step` (see `TrainingStep`) holds the model and gives a loss; it may be the model itself, where that is called. All
    processes build the same model, from the same seed, before this; afterwards each has its share of the parameters, as
    DTensors, and the names stay as they are. Returns the placements of the parameters that are split over the tensor
    axis, which saving and gathering need to know. Gradients are summed over the processes, not averaged: the loss must
    be divided by what counts over all of them. With `bf16`, blocks are gathered and compute in it; what is held, summed
    over the processes and passed from block to block stays fp32, and so do embeddings and the output layer.

    With a fake process group, fake tensors work too: the model is built and the step is called under a FakeTensorMode,
    while the mesh, and this call, stay outside of it (they look at the mesh's own numbers).

        mesh = make_mesh(config, "cpu")
        step = TrainingStep(model, task.loss)
        parallelize(step, model, mesh, config)
        loss, _ = step(batch)
        (loss / targets_of_all_processes).backward()
    """
    split = split_layers(model, mesh["tensor"]) if mesh["tensor"].size() > 1 else {}
    prepare_blocks(model, config)
    sharding = mesh["replicate", "shard"]
    # Not by autocast: its copies of the weights would be kept for the backward pass, those of all blocks at once.
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32) if bf16 else MixedPrecisionPolicy()
    for block in blocks_of(model):
        # The projections of XLNet's blocks are called from outside, so they stay in the root's group.
        if not isinstance(block, RelativeBlock):
            _sum_gradients(fully_shard(block, mesh=sharding, mp_policy=policy))
    _sum_gradients(fully_shard(step, mesh=sharding))
    return split


def _sum_gradients(module: FSDPModule) -> None:
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)  # gloo has no other
