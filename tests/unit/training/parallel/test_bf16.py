"""Blocks that compute in bf16 learn as in fp32, and what is held and what is summed stays fp32."""

from typing import Any, cast

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.models.decoder_only import DecoderOnly
from heedful.tasks.task import Task
from heedful.training.config import MachineConfig, ParallelConfig, TrainingConfig
from heedful.training.parallel.sharded import Sharded
from heedful.training.parallel.world import World
from parallel_models import CASES, batches, build
from planned_subjects import losses_in_both_precisions
from process_group import run_in_processes


def losses_and_types(world: World) -> list[Any]:
    return [losses_in_both_precisions(world), types_in_a_step(world)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What each of two processes finds."""
    return run_in_processes(2, tmp_path_factory.mktemp("bf16"), losses_and_types)


def test_losses_in_bf16_are_near_those_in_fp32(found: list[list[Any]]) -> None:
    for (full, half), _ in found:
        assert full[2] < full[1] < full[0]
        assert half == pytest.approx(full, rel=0.01)
        assert half != full


class Collectives(TorchDispatchMode):
    """Notes the types of what processes gather and sum."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[str]] = {"gathered": set(), "summed": set()}

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name, tensors = str(function), [each for each in _flat(arguments) if isinstance(each, torch.Tensor)]
        for word, kind in (("gather", "gathered"), ("reduce", "summed")):
            if word in name and "c10d" in name:
                self.found[kind] |= {str(each.dtype) for each in tensors}
        return function(*arguments, **(keywords or {}))


def _flat(values: Any) -> list[Any]:
    return [each for value in values for each in (_flat(value) if isinstance(value, list | tuple) else [value])]


def types_in_a_step(world: World) -> dict[str, list[str]]:
    """The types of all that takes part in a step of a learner whose settings ask for bf16 and shards."""
    case = CASES["gpt"]
    model = cast(DecoderOnly, build(case, torch.float32))

    class Learned:
        loss = staticmethod(case.loss)

    machine = MachineConfig("cpu", workers=2, threads=1, precision="bf16")
    config = TrainingConfig(machine=machine, parallel=ParallelConfig(1, 2, 1, reduce="fast"), ema_decay=0.9)
    learner: Sharded[Any] = Sharded(model, cast(Task[Any], Learned), config, world)
    computed: set[str] = set()
    inner = cast(DecoderOnly, learner.model).blocks[0].feed_forward.inner_projection  # type: ignore[union-attr,index]
    inner.register_forward_hook(
        lambda module, given, result: computed.update({str(module.weight.dtype), str(given[0].dtype)})
    )
    parts = batches(case)[0]
    collectives = Collectives()
    with collectives:
        own = [(number, parts[number], True) for number in range(world.rank, 4, 2)]
        learner.step.train()
        learner.gradients.compute(own, sum(each.num_targets for each in parts), 1)
    learner.clip()
    learner.update(1, 1e-3)
    held = {"held": learner.model.parameters(), "averaged": learner.average.tensors.values() if learner.average else []}
    held["gradients"] = [each.grad for each in learner.model.parameters()]
    held["moments"] = [state["exp_avg_sq"] for state in learner.optimizer.state.values()]
    types = {name: {str(each.dtype) for each in tensors} for name, tensors in held.items()}
    return {name: sorted(each) for name, each in {**types, "computed": computed, **collectives.found}.items()}


def test_bf16_gathers_and_computes_in_bf16_and_holds_and_sums_fp32(found: list[list[Any]]) -> None:
    for _, types in found:
        assert types["computed"] == ["torch.bfloat16"]
        assert "torch.bfloat16" in types["gathered"]
        assert types["summed"] == ["torch.float32", "torch.float64"]  # gradients, and the loss
        for held in ("held", "averaged", "gradients", "moments"):
            assert types[held] == ["torch.float32"], held
