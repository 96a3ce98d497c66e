import pytest
import torch

from heedful.config import from_dict, merge
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.parameter_count import counted, formula
from heedful.presets import PRESETS
from heedful.presets.preset import given_settings
from heedful.settings.encoder_decoder import EncoderDecoderConfig


def config(preset: str, **changes) -> EncoderDecoderConfig:
    settings = given_settings(PRESETS[preset]())["model"]
    return from_dict(EncoderDecoderConfig, merge(settings, {"vocabulary_size": 37_000, **changes}))


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("translation")])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shared_embeddings": False},
        {"tied_output": False, "positions": "learned"},
        {"decoder": {"num_layers": 2, "norm": "pre", "attention": {"key_width": 24, "value_width": 40}}},
        {"positions": {"scheme": "relative_buckets", "num_buckets": 14}, "decoder": {"attention": {"num_heads": 2}}},
        {"output_bias": True, "embedding": {"segments": 3, "norm": True}, "encoder": {"norm_kind": "rms"}},
        {"encoder": {"attention": {"num_key_value_heads": 2, "bias": False, "scoring": "additive"}}},
        {"decoder": {"feed_forward": {"activation": "swiglu", "bias": False}}},
    ],
)
def test_the_formula_equals_the_count(preset: str, changes: dict) -> None:
    settings = config(preset, **changes)
    with torch.device("meta"):
        assert formula(settings) == counted(EncoderDecoder(settings))


def test_the_papers_models_at_its_vocabulary() -> None:
    assert f"{formula(config('translation_base')) / 1e6:.1f}" == "63.1"  # the paper says 65
    assert f"{formula(config('translation_big')) / 1e6:.1f}" == "214.2"  # the paper says 213
