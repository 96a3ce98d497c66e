"""What a process of several finds when a model that is spread over them is measured, averaged and written."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from heedful.decoding.options import DecodingOptions
from heedful.decoding.run import Request, decode
from heedful.inspection.attention.entropy import attention_entropy
from heedful.machine.devices import side_by_side
from heedful.machine.shared_work import by_first, shared_work
from heedful.settings.xlnet import XLNetConfig
from heedful.tasks.language_modeling.task import language_loss
from heedful.training.averaging import mean_of_checkpoints
from heedful.training.checkpoint import checkpoint_path
from heedful.training.config import MachineConfig, ParallelConfig, TrainingConfig
from heedful.training.parallel.apply import make_mesh
from heedful.training.parallel.spread_model import SpreadModel
from heedful.training.parallel.world import World
from heedful.training.replica import make_learner
from heedful.training.run_state import RunState
from heedful.weights_seal import unsealed
from heedful.weights_writer import write_weights
from parallel_models import CASES, DEEP, VOCABULARY, Case, build, windows

BATCHES = 5
LIMIT = 9_000


def _language(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
    return language_loss(model, batch, 0.0)


XLNET = Case(
    "xlnet", XLNetConfig(vocabulary_size=VOCABULARY, width=24, max_length=17, memory_length=0), _language, windows
)
MEASURED = {**CASES, **DEEP, "xlnet": XLNET}


def measurements(model: Any, case: Case) -> dict[str, Any]:
    """What a validation computes: losses of batches, texts, and a look at attention."""
    random = np.random.default_rng(7)
    batches = [case.batch(random) for _ in range(BATCHES)]
    found: dict[str, Any] = {"losses": [*side_by_side(lambda b: float(case.loss(model, b)[1]), batches, model.device)]}

    def read(view: nn.Module) -> Iterator[None]:
        case.loss(view, batches[0])
        yield

    found["entropy"] = by_first(lambda: attention_entropy(model, read))
    if hasattr(model, "prefill"):
        requests = [Request(index, [7 + index, 11, 13 * index + 5]) for index in range(3)]
        options = DecodingOptions(beam=2, max_length=6)
        texts = by_first(
            lambda: [(each.index, each.hypotheses[0].tokens) for each in decode(model, requests, options, 2)]
        )
        found["texts"] = sorted(texts)
    return found


def measure(world: World, folder: str, layouts: list[dict[str, Any]], cases: list[str]) -> list[Any]:
    """Which cases and layouts are not as in one process, and how much of a model a process had at most."""
    wrong: list[Any] = []
    for name in cases:
        expected = measurements(build(MEASURED[name], torch.float32).eval(), MEASURED[name])
        for number, layout in enumerate(layouts):
            if ("pipeline" in layout and not name.startswith("gpt")) or ("tensor" in layout and name == "xlnet"):
                continue
            found = _spread(world, Path(folder, name, str(number)), MEASURED[name], layout)
            bad = [key for key in expected if found[key] != expected[key]] + list(found["wrong"])
            wrong += [[name, str(layout), bad, found["most"]]] if bad else []
    return wrong


def _spread(world: World, folder: Path, case: Case, layout: dict[str, Any]) -> dict[str, Any]:
    model = build(case, torch.float32)
    total = sum(each.numel() for each in model.parameters())
    machine = MachineConfig("cpu", 4, 1, "fp32")
    config = TrainingConfig(parallel=ParallelConfig(**layout, reduce="fast"), machine=machine, ema_decay=0.9)
    learner: Any = make_learner(model, SimpleNamespace(loss=case.loss), config, world)
    assert isinstance(learner, SpreadModel)
    most, wrong = [0], []
    fetch = learner.lender._fetch

    def watched(unit: int) -> Iterator[tuple[str, Tensor]]:
        yield from fetch(unit)
        most[0] = max(most[0], sum(each.numel() for each in model.parameters()))

    learner.lender._fetch = watched  # type: ignore[method-assign]
    with learner.measured(averaged=False) as sharing, shared_work(sharing):
        found = measurements(model.eval(), case)
    blocks = [sum(learner.shapes[name].numel() for name in unit) for unit in learner.lender.units]
    if not most[0] <= blocks[0] + max(blocks[1:]) < total:
        wrong.append(f"{most[0]} of {total} numbers were in a process")
    if any(each.numel() for each in model.parameters()):
        wrong.append("something was kept")
    wrong += _means(world, folder, learner)
    return {**found, "wrong": wrong, "most": most[0]}


@torch.no_grad()
def _means(world: World, folder: Path, learner: Any) -> list[str]:
    """What is wrong with the mean of two checkpoints, and with what is written of it, in shards."""
    paths = []
    for step in (1, 2):
        state = RunState()
        state.position.step = step
        learner.checkpoint(folder, state, copied=True)()
        paths.append(checkpoint_path(folder, step))
        for parameter in learner.model.parameters():
            parameter.mul_(1.5)
    wrong = []
    with ExitStack() as stack:
        stack.enter_context(learner.mean_of(paths))
        weights = learner.weights()
        if world.leads:
            write_weights(folder, weights, unsealed(None), LIMIT)
        else:
            weights.drain()
    if world.leads:
        from heedful.core.weight_shards import open_weights

        expected = mean_of_checkpoints(paths)
        with open_weights(folder) as file:
            file.check()
            if file.tensors.keys() != expected.keys() or len(file.version) < 2:
                wrong.append(f"{len(file.version)} files have {sorted(file.tensors)}")
            wrong += [name for name in expected if not np.array_equal(file.floats(name), expected[name].numpy())]
    dist.barrier()
    return wrong


def waits(world: World, seconds: float) -> dict[str, float]:
    """How long the first process waits, in its groups of a mesh of four, for others that do nothing."""
    mesh, found = make_mesh(ParallelConfig(shard=2, tensor=2), "cpu", seconds), {}
    for axis in ("shard", "tensor"):
        began = time.monotonic()
        if world.leads:
            try:
                dist.all_reduce(torch.ones(3), group=mesh[axis].get_group())
            except RuntimeError:
                found[axis] = time.monotonic() - began
    if not world.leads:
        time.sleep(3 * seconds)
    return found


def measure_and_wait(world: World, folder: str, layouts: list[dict[str, Any]], cases: list[str], seconds: float) -> Any:
    """Both in one start of the processes."""
    return {"wrong": measure(world, folder, layouts, cases), "waited": waits(world, seconds)}
