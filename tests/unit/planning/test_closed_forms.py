"""Closed forms against what torch counts on the model itself."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heedful.models.families import FAMILIES
from heedful.models.parameter_count import counted
from heedful.planning.flops import flops_of
from heedful.planning.layouts import Layout, meshes
from heedful.planning.parameters import parameters_of
from heedful.planning.shape import shape_of
from heedful.planning.subject import subject_of
from planned_subjects import MODELS, subject


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_the_whole_model(name: str) -> None:
    given = subject(name)
    model = FAMILIES[given.family].build_without_memory(given.model)
    found = parameters_of(given.family, given.model)
    assert found.total == counted(model)
    assert found.held(Layout()) == found.total


@pytest.mark.parametrize("name", MODELS)
def test_the_shares_of_all_gpus_are_at_least_the_model(name: str) -> None:
    given = subject(name)
    found = parameters_of(given.family, given.model)
    for layout in meshes(shape_of(given.family, given.model), given.family, 12):
        if layout.pipeline == 1:
            whole = layout.tensor * layout.shard * found.held(layout)
            assert found.total <= whole < 2 * found.total


@pytest.mark.parametrize("name", ["translation", "gpt", "modern", "vision"])
def test_flops_are_what_torch_counts(name: str) -> None:
    given = subject(name)
    shape = shape_of(given.family, given.model)
    with torch.device("meta"):
        model = FAMILIES[given.family].build(given.model).eval()
        if given.family == "vision":
            inputs = [torch.zeros(3, 3, *given.model.image_size)]
        else:
            ids = torch.zeros(3, given.model.max_length, dtype=torch.long)
            inputs = [ids, ids] if given.family == "encoder_decoder" else [ids]
        with FlopCounterMode(display=False) as forward:
            answer = model(*inputs)
        with FlopCounterMode(display=False) as backward:
            answer.sum().backward()
    flops = flops_of(shape)
    assert forward.get_total_flops() == pytest.approx(3 * shape.tokens * flops.forward, rel=1e-9)
    # The first layer of a vision model has no gradient by its input, the pixels.
    pixels = 2 * shape.front if given.family == "vision" else 0
    assert backward.get_total_flops() == pytest.approx(3 * (shape.tokens * flops.backward - pixels), rel=1e-9)


def test_gpt3_takes_the_flops_that_were_published() -> None:
    """3.14e23 for 300 billion tokens (Brown et al., 2020, Table D.1), which leaves out the scores of attention."""
    given = subject_of("gpt3_175b")
    total = flops_of(shape_of(given.family, given.model)).total(recompute=False) * 300e9
    assert total == pytest.approx(3.14e23, rel=0.04)
    assert total > 3.14e23


def test_layouts_use_all_gpus_and_divide_heads_and_layers() -> None:
    given = subject("gpt")
    found = list(meshes(shape_of(given.family, given.model), given.family, 24))
    assert {layout.gpus for layout in found} == {24}
    assert {layout.tensor for layout in found} == {1, 2, 4}
    assert {layout.pipeline for layout in found} == {1, 2}
    assert all(each.shard == each.tensor == 1 for each in found if each.pipeline > 1)  # as training has it
    assert len(set(found)) == len(found)
    translation = subject("translation")
    assert {
        each.pipeline for each in meshes(shape_of(translation.family, translation.model), "encoder_decoder", 6)
    } == {1}
