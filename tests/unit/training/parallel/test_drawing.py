"""What is drawn one parameter at a time is what the ordinary build has, to the last bit."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from heedful.models.families import FAMILIES
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.training.parallel.drawing import Drawing
from parallel_models import CASES

MODELS = {
    **{name: (case.family, case.config) for name, case in CASES.items()},
    "xlnet": ("xlnet", XLNetConfig(vocabulary_size=53, width=24, segments=True)),
    "recurrent": ("recurrent", RecurrentConfig(vocabulary_size=53, width=20)),
}


def ordinary(name: str) -> nn.Module:
    torch.manual_seed(5)
    return FAMILIES[MODELS[name][0]].build(MODELS[name][1])


def drawing_of(name: str) -> Drawing:
    return Drawing(partial(FAMILIES[MODELS[name][0]].build, MODELS[name][1]), 5)


@pytest.mark.parametrize("name", MODELS)
def test_the_values_are_those_of_the_ordinary_build(name: str) -> None:
    wanted, after = ordinary(name), torch.rand(3)
    drawing = drawing_of(name)
    model = drawing.model()
    assert torch.equal(torch.rand(3), after)
    parameters = dict(model.named_parameters())
    assert parameters.keys() == dict(wanted.named_parameters()).keys()
    for each, parameter in reversed([*wanted.named_parameters()]):  # in any order
        assert torch.equal(drawing.value(parameters[each]), parameter), each
    for each, buffer in wanted.named_buffers():
        assert torch.equal(dict(model.named_buffers())[each], buffer), each
    assert [*dict(drawing.unfilled().named_parameters())] == [*parameters]


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_model_that_is_drawn_takes_the_memory_of_one_parameter() -> None:
    config = DecoderOnlyConfig(vocabulary_size=101, width=1024, max_length=17)
    build = partial(FAMILIES["decoder_only"].build, config)
    drawing, before = Drawing(build, 5), resident()
    model = drawing.model()
    size = sum(each.nbytes for each in model.parameters())
    largest = max(model.parameters(), key=torch.numel)
    drawing.value(largest)
    assert size > 10 * largest.nbytes
    assert resident() - before < largest.nbytes + size / 10


def resident() -> int:
    """The memory of this process that is its own."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])
