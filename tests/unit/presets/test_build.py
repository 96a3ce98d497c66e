import subprocess
import sys
from types import ModuleType

import pytest
import torch

import heedful
import heedful.decoding
from heedful.config import from_dict
from heedful.models.parameter_count import counted
from heedful.presets import PRESETS
from heedful.presets.preset import given_settings
from heedful.settings.families import FAMILY_SETTINGS
from heedful.training.config import TrainingConfig


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_it_sets_and_the_defaults(name: str) -> None:
    preset = heedful.preset(name)
    given = given_settings(preset)
    assert from_dict(FAMILY_SETTINGS[preset.family], given["model"]) == preset.model
    assert from_dict(TrainingConfig, given["training"]) == preset.training
    assert {"width", "stack"} & given["model"].keys()
    assert given["training"]["schedule"]["kind"] == preset.training.schedule.kind


def test_what_a_preset_leaves_open_is_not_among_what_it_sets() -> None:
    assert "image_size" not in given_settings(heedful.preset("vision_tiny"))["model"]
    assert given_settings(heedful.preset("vit_base_16"))["model"]["image_size"] == [224, 224]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_built(name: str) -> None:
    size = "num_classes" if heedful.preset(name).family == "vision" else "vocabulary_size"
    with torch.device("meta"):
        assert counted(heedful.build(name, **{size: 1009})) > 100_000


def test_settings_of_ones_own_go_over_those_of_the_preset() -> None:
    model = heedful.build("translation_tiny", vocabulary_size=53, encoder={"num_layers": 2})
    assert (len(model.encoder), len(model.decoder), model.config.encoder.dropout) == (2, 4, 0.2)
    assert model(torch.tensor([[5, 7]]), torch.tensor([[1, 3, 4]])).shape == (1, 3, 53)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("translation_bsae", {}, "unknown preset 'translation_bsae': did you mean 'translation_base'?"),
        ("translation_base", {}, "needs to know how many tokens there are: give vocabulary_size"),
        ("vit_tiny_16", {}, "vit_tiny_16 needs to know how many classes there are: give num_classes"),
        ("encoder_tiny", {"vocabulary_size": 31, "head": "classes"}, "num_labels is 0, but must be at least 1"),
        (
            "encoder_tiny",
            {"vocabulary_size": 31, "num_labels": 2},
            "the head is 'none', which has no labels: give head=",
        ),
        ("gpt3_175b", {}, "gpt3_175b has 174.6 billion parameters, which take 698 GB, but there are "),
        ("language_tiny", {"vocabulary_size": 31, "widht": 8}, "unknown setting 'widht': did you mean 'width'?"),
    ],
)
def test_what_is_missing_or_misspelt_is_an_error_in_words(name: str, settings: dict, message: str) -> None:
    with pytest.raises(heedful.UserError) as error:
        heedful.build(name, **settings)
    assert message in str(error.value)


def test_an_encoder_hides_tokens_in_training_only_if_there_is_a_mask_token() -> None:
    ids_BT = torch.full((5, 41), 9)
    for settings, dropout in (({}, 0.0), ({"special_tokens": {"mask": 3}}, 0.2)):
        model = heedful.build("encoder_tiny", vocabulary_size=60, **settings)
        assert model.config.token_dropout == dropout
        seen: list[torch.Tensor] = []
        model.embedding.register_forward_pre_hook(lambda _, arguments, seen=seen: seen.append(arguments[0]))
        model.train()(ids_BT).sum().backward()
        assert bool((seen[0] == 3).any()) == bool(dropout)
    with pytest.raises(heedful.UserError, match=r"special_tokens=.*, or leave token_dropout out"):
        heedful.build("encoder_tiny", vocabulary_size=60, token_dropout=0.1)
    config = heedful.models.EncoderOnlyConfig(
        60, 24, stack=heedful.layers.StackConfig(1, attention=heedful.layers.AttentionConfig(2)), token_dropout=0.1
    )
    with pytest.raises(ValueError, match="special_tokens has no mask"):
        heedful.models.EncoderOnly(config).train()(ids_BT)


@pytest.mark.parametrize("package", [heedful.layers, heedful.models, heedful.decoding])
def test_a_package_lists_its_names_before_they_are_imported(package: ModuleType) -> None:
    program = f"import {package.__name__} as package; print(*dir(package))"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert listed == package.__all__ == dir(package)
    assert all(hasattr(package, name) for name in listed)


def test_the_public_names_are_there() -> None:
    for name in heedful.__all__:
        assert getattr(heedful, name) is not None
    assert heedful.layers.__name__ == "heedful.layers"
    assert heedful.models.VisionTransformer(heedful.models.VisionConfig()).config.num_classes is None
    with pytest.raises(AttributeError, match="module 'heedful' has no attribute 'nothing'"):
        _ = heedful.nothing
