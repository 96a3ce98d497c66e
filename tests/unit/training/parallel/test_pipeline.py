"""A model in stages computes what it computes in one process, dropout included."""

from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.models.decoder_only import DecoderOnly
from heedful.training.config import ParallelConfig
from heedful.training.parallel.layout import WITHOUT_STAGES, check_stages
from heedful.training.parallel.stages import keep_stage, owners_of, stage_of_layers
from parallel_models import CASES, DEEP, build, compare, compare_kinds
from process_group import run_in_processes

LOSS = {"float64": 1e-9, "float32": 1e-4}
GPTS = [name for name in CASES if name.startswith("gpt")]


def test_two_stages_give_the_losses_of_one_process(tmp_path: Path) -> None:
    layouts = [{"pipeline": 2}, {"pipeline": 2, "activation_checkpointing": True}]
    for kind, found in run_in_processes(2, tmp_path, compare_kinds, layouts, GPTS, list(LOSS))[0].items():
        check(found, kind, len(layouts) * len(GPTS))


def test_four_processes_are_stages_or_copies_of_them(tmp_path: Path) -> None:
    layouts = [{"pipeline": 4}, {"replicate": 2, "pipeline": 2}]
    check(run_in_processes(4, tmp_path, compare, layouts, [*DEEP], "float64")[0], "float64", 2)


def check(found: list[list[float]], kind: str, count: int) -> None:
    assert len(found) == count
    for name, layout, by_loss, by_weight in found:
        assert by_loss <= LOSS[kind], (name, layout, by_loss)
        assert kind == "float32" or by_weight <= 1e-9, (name, layout, by_weight)


@pytest.mark.parametrize("name", [*GPTS, *DEEP])
def test_the_stages_have_every_parameter_under_its_name(name: str) -> None:
    case = {**CASES, **DEEP}[name]
    whole = build(case, torch.float32)
    assert isinstance(whole, DecoderOnly)
    owners, found = owners_of(whole, 2), {}
    for stage in range(2):
        model = build(case, torch.float32)
        assert isinstance(model, DecoderOnly)
        keep_stage(model, stage, 2)
        held = dict(model.named_parameters())
        assert held.keys() == {each for each, stages in owners.items() if stage in stages}
        found |= held
    assert found.keys() == dict(whole.named_parameters()).keys()
    for each, parameter in whole.named_parameters():
        assert torch.equal(found[each], parameter)


def test_tied_weights_are_at_both_ends_and_a_shared_bias_is_everywhere() -> None:
    deep, buckets = build(DEEP["gpt_deep"], torch.float32), build(CASES["gpt_additive_buckets"], torch.float32)
    assert isinstance(deep, DecoderOnly) and isinstance(buckets, DecoderOnly)
    assert owners_of(deep, 4)["embedding.table.weight"] == (0, 3)
    assert owners_of(deep, 4)["positions.table"] == (0,)
    assert owners_of(deep, 4)["norm.weight"] == (3,)
    assert owners_of(buckets, 2)["positions.biases"] == (0, 1)


def test_layers_lie_as_evenly_as_they_can() -> None:
    assert stage_of_layers(7, 3) == [0, 0, 0, 1, 1, 2, 2]
    with pytest.raises(UserError, match="pipeline is 3, but the model has 2 layers, and every stage needs one"):
        stage_of_layers(2, 3)


@pytest.mark.parametrize("family", WITHOUT_STAGES)
def test_other_families_are_refused_with_a_reason(family: str) -> None:
    with pytest.raises(UserError, match=rf"pipeline is 2, but a model of the family '{family}' cannot lie in stages: "):
        check_stages(ParallelConfig(pipeline=2), family)
    check_stages(ParallelConfig(pipeline=1), family)
    check_stages(ParallelConfig(pipeline=2), "decoder_only")
