import pytest
import torch

from heedful.config import from_dict
from heedful.models.decoder_only import DecoderOnly, positions_in_documents
from heedful.models.families import FAMILIES
from heedful.models.parameter_count import counted, stack_formula
from heedful.presets import PRESETS
from heedful.settings.decoder_only import DecoderOnlyConfig

# Radford et al. (2019) as counted since (124 million, not the 117 of the paper); Brown et al. (2020), Table 2.1.
PUBLISHED = {
    "gpt2_small": 124.4e6,
    "gpt2_medium": 354.8e6,
    "gpt2_large": 774.0e6,
    "gpt2_xl": 1557.6e6,
    "gpt3_small": 125e6,
    "gpt3_medium": 350e6,
    "gpt3_large": 760e6,
    "gpt3_xl": 1.3e9,
    "gpt3_2_7b": 2.7e9,
    "gpt3_6_7b": 6.7e9,
    "gpt3_13b": 13.0e9,
    "gpt3_175b": 175.0e9,
}
# GPT-3's table gives the XL model 24 heads of 128, more than its width of 2048: 1.52 billion by its own numbers.
TOLERANCE = {"gpt3_xl": 0.18}


def settings(preset: str) -> DecoderOnlyConfig:
    return PRESETS[preset]().model


@pytest.mark.parametrize("preset", PUBLISHED)
def test_parameter_counts_are_the_published_ones(preset: str) -> None:
    config = settings(preset)
    count = counted(FAMILIES["decoder_only"].build_without_memory(config))
    exact = preset.startswith("gpt2")
    assert count == pytest.approx(PUBLISHED[preset], rel=TOLERANCE.get(preset, 5e-4 if exact else 0.025))
    formula = stack_formula(config.width, config.stack, attentions=1)
    assert count == formula + (config.vocabulary_size + config.max_length) * config.width


def test_every_second_layer_of_gpt3_is_local() -> None:
    stack = settings("gpt3_small").stack
    assert [stack.window(layer) for layer in range(4)] == [None, 256, None, 256]


def test_positions_begin_anew_with_each_document() -> None:
    documents = torch.tensor([[1, 1, 2, 2, 2, 5], [3, 4, 4, 4, 4, 4]])
    assert positions_in_documents(documents).tolist() == [[0, 1, 0, 1, 2, 0], [0, 0, 1, 2, 3, 4]]


@torch.inference_mode()
def test_resizing_changes_nothing_within_the_old_length_but_what_the_scheme_says() -> None:
    torch.manual_seed(1)
    config = from_dict(DecoderOnlyConfig, {"vocabulary_size": 31, "width": 24, "max_length": 17})
    model = DecoderOnly(config).eval()
    model.resize_positions(35)
    assert model(torch.randint(3, 31, (2, 35))).shape == (2, 35, 31)
    assert model.longest_target(4) == 30
