"""Models decode in the type that they have: fp32, fp64, bf16, and whatever `torch.autocast` makes of them."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.layers.positions import SCHEMES
from heedful.models.shortlist_output import ShortlistOutput
from heedful.text.shortlist import Shortlist
from small_folders import write_folders

V = 60
STACK = {"num_layers": 2, "dropout": 0.0, "attention": {"num_heads": 2}}
ADDITIVE = {**STACK, "attention": {"num_heads": 2, "scoring": "additive", "value_width": 10}}
XLNET = {**STACK, "norm": "post"}
# The third is longer than a block of keys.
SOURCES = [[5, 7, 11, 5, 7, 11], [13, 4], [9, 30] * 140]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"translation_{name}": ("translation_tiny", {"positions": name}) for name in SCHEMES},
    **{f"language_{name}": ("language_tiny", {"positions": name}) for name in SCHEMES},
    "additive": ("translation_tiny", {"encoder": ADDITIVE, "decoder": ADDITIVE}),
    "lstm": ("recurrent_tiny", {"cell": "lstm", "attention": "additive"}),
    "gru": ("recurrent_tiny", {"cell": "gru"}),
    "xlnet": ("xlnet_tiny", {"stack": XLNET}),
}


def built(case: str) -> Any:
    name, settings = CASES[case]
    stacks = {"translation_tiny": {"encoder": STACK, "decoder": STACK}, "language_tiny": {"stack": STACK}}
    torch.manual_seed(3)
    own = {"vocabulary_size": V, "width": 24, "max_length": 400, **stacks.get(name, {}), **settings}
    return heedful.build(name, **own).eval()


def wide(model: Any) -> list[list[int]]:
    options = heedful.DecodingOptions(beam=3, max_length=24)
    return [found[0].tokens for found in heedful.beam(model, SOURCES, options)]


@pytest.mark.parametrize("case", CASES)
def test_every_family_decodes_in_every_type(case: str) -> None:
    model = built(case)
    expected, best = heedful.greedy(model, SOURCES, max_length=24), wide(model)
    exact = copy.deepcopy(model).to(torch.float64)
    assert heedful.greedy(exact, SOURCES, max_length=24) == expected
    assert wide(exact) == best
    with torch.autocast("cpu", torch.bfloat16):
        assert heedful.greedy(exact, SOURCES, max_length=24) == expected  # autocast leaves fp64 as it is
        assert len(wide(model)) == len(heedful.greedy(model, SOURCES, max_length=24)) == 3
    short = model.to(torch.bfloat16)
    assert len(wide(short)) == len(heedful.greedy(short, SOURCES, max_length=24)) == 3


def test_the_logits_of_a_step_are_nearly_the_same_in_bf16() -> None:
    model, source = built("translation_rotary"), torch.tensor([[5, 7, 11, 2]])
    found = []
    for each in (model, copy.deepcopy(model).to(torch.bfloat16)):
        with torch.inference_mode():
            state = each.new_state(1, 1, 4, 8)
            state.insert([0], each.prefill(source, torch.tensor([4])), [0])
            found.append(torch.stack([each.step(torch.tensor([token]), state) for token in (1, 9, 20)]).float())
    assert found[1].dtype == torch.float32
    torch.testing.assert_close(found[1], found[0], atol=0.1, rtol=0.1)


def with_shortlist() -> Any:
    model = built("translation_sinusoidal")
    shortlist = Shortlist(np.arange(40), np.array([[55, 56]] * V), np.ones((V, 2), np.float32))
    model.shortlist = ShortlistOutput(shortlist, model.output)
    return model


def test_a_shortlist_has_the_type_of_its_model() -> None:
    model = with_shortlist()
    expected = heedful.greedy(model, SOURCES, max_length=24)
    assert heedful.greedy(with_shortlist().to(torch.float64), SOURCES, max_length=24) == expected
    with torch.autocast("cpu", torch.bfloat16):
        heedful.greedy(model, SOURCES, max_length=24)
    heedful.greedy(model.to(torch.bfloat16), SOURCES, max_length=24)


def test_a_pipeline_answers_with_a_model_of_any_type(tmp_path: Any) -> None:
    folders = write_folders(tmp_path)
    translator = heedful.load(folders["translation"], engine="torch")
    writer = heedful.load(folders["language_model"], engine="torch")
    options = heedful.GenerationOptions(max_tokens=9)
    expected = translator.translate("red dog").text, writer.generate("red", options)[0]
    for dtype in (torch.float64, torch.bfloat16):
        translator.model.to(dtype), writer.model.to(dtype)
        found = translator.translate("red dog").text, writer.generate("red", options)[0]
        assert found == expected or dtype == torch.bfloat16
