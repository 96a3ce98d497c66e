from dataclasses import replace

import pytest
import torch

from heedful.models.families import FAMILIES
from heedful.models.weights_file import adopt_parameters, parameter_tensors
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig

STACK = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))
SETTINGS = {
    "encoder_decoder": EncoderDecoderConfig(31, 12, 29, encoder=STACK, decoder=STACK),
    "decoder_only": DecoderOnlyConfig(31, 12, 29, "rotary", stack=STACK),
    "encoder_only": EncoderOnlyConfig(31, 12, 29, "learned", stack=STACK, head="masked"),
    "recurrent": RecurrentConfig(31, 11, 14, 29, encoder=RecurrentStackConfig(2)),
    "xlnet": XLNetConfig(31, 12, 29, 11, stack=replace(STACK, norm="post")),
    "vision": VisionConfig((13, 17), (5, 4), 1, 3, 12, stack=STACK),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_with_saved_weights_it_is_the_model_that_they_came_from(family: str) -> None:
    torch.manual_seed(1)
    model = FAMILIES[family].build(SETTINGS[family])
    tensors = parameter_tensors(model)
    other = FAMILIES[family].build_unfilled(SETTINGS[family], {name: each.shape for name, each in tensors.items()})
    adopt_parameters(other, tensors)
    assert repr(other) == repr(model)
    for kind in ("named_parameters", "named_buffers"):
        ours, theirs = dict(getattr(other, kind)()), dict(getattr(model, kind)())
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_nothing_is_drawn() -> None:
    tensors = parameter_tensors(FAMILIES["encoder_decoder"].build(SETTINGS["encoder_decoder"]))
    before = torch.get_rng_state()
    shapes = {name: each.shape for name, each in tensors.items()}
    FAMILIES["encoder_decoder"].build_unfilled(SETTINGS["encoder_decoder"], shapes)
    assert torch.equal(torch.get_rng_state(), before)
    FAMILIES["encoder_decoder"].build(SETTINGS["encoder_decoder"])
    assert not torch.equal(torch.get_rng_state(), before)
