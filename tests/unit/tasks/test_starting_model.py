"""Starting from the weights of another model."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.starting_model import StartingModel, StartingTextModel
from heedful.text.tokenizer import Tokenizer


def save(folder: Path, **settings) -> EncoderOnly:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 271, mask=True)
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3))
    config = EncoderOnlyConfig(
        tokenizer.vocabulary_size, 12, 29, stack=stack, special_tokens=tokenizer.special_tokens, **settings
    )
    model = EncoderOnly(config)
    save_model_folder(folder, model, tokenizer, ModelConfig("encoder_only", "encoder", config), "")
    return model


def opened(folder: Path) -> StartingTextModel:
    return StartingTextModel(str(folder), ("encoder_only",))


def started(folder: Path, model: EncoderOnly, **changes) -> EncoderOnly:
    torch.manual_seed(2)
    fresh = EncoderOnly(replace(model.config, **changes))
    opened(folder).copy_for(fresh, fresh.config.head)
    return fresh


def same(one: EncoderOnly, other: EncoderOnly) -> set[str]:
    """The names of the parameters that both have, with the same values."""
    others = dict(other.named_parameters())
    return {name for name, each in one.named_parameters() if name in others and torch.equal(each, others[name])}


def test_a_head_for_labels_starts_afresh(tmp_path: Path) -> None:
    old = save(tmp_path, head="masked")
    new = started(tmp_path, old, head="classes", num_labels=3)
    changed = {name for name, _ in new.named_parameters()} - same(new, old)
    assert changed == {"output.weight", "output.bias"}
    assert "head, which starts from scratch" in opened(tmp_path).message("classes")


def test_masked_tokens_go_on_with_their_head(tmp_path: Path) -> None:
    old = save(tmp_path, head="masked")
    assert same(old, started(tmp_path, old)) == {name for name, _ in old.named_parameters()}
    assert "all weights" in opened(tmp_path).message("masked")


def test_a_pooler_goes_on_if_there_is_one(tmp_path: Path) -> None:
    old = save(tmp_path / "old", pooler=True)
    assert "pooler.0.weight" in same(old, started(tmp_path / "old", old, head="classes", num_labels=2))
    masked = save(tmp_path / "masked", pooler=True, head="masked")
    assert "pooler.0.weight" in dict(
        started(tmp_path / "masked", masked, head="classes", num_labels=2).named_parameters()
    )


def test_a_model_for_shorter_texts_has_the_first_positions(tmp_path: Path) -> None:
    old = save(tmp_path)
    new = started(tmp_path, old, max_length=17)
    assert torch.equal(new.positions.table, old.positions.table[:17])
    with pytest.raises(UserError, match=r"positions.table is \(29, 12\), expected \(31, 12\)"):
        started(tmp_path, old, max_length=31)


def test_the_settings_are_those_of_the_folder_without_the_head(tmp_path: Path) -> None:
    save(tmp_path, head="classes", num_labels=3)
    settings = opened(tmp_path).settings()
    assert settings["model"]["width"] == 12 and "head" not in settings["model"]
    assert settings["training"]["schedule"]["learning_rate"] == pytest.approx(0.04 / 12, rel=1e-3)


def test_a_tied_output_layer_is_not_taken_for_the_head(tmp_path: Path) -> None:
    old = save(tmp_path, head="masked")
    new = started(tmp_path, old, head="tags", num_labels=5)
    assert torch.equal(new.embedding.table.weight, old.embedding.table.weight)
    assert not {"transform.dense.weight", "transform.norm.bias"} & dict(new.named_parameters()).keys()


def test_a_folder_of_another_family_or_without_a_vocabulary_is_refused(tmp_path: Path) -> None:
    model = save(tmp_path / "text")
    with pytest.raises(UserError, match=r"'encoder_only' \(for encoder\): this job can start from one of vision"):
        StartingModel(str(tmp_path / "text"), ("vision",))
    config = ModelConfig("encoder_only", "encoder", model.config, has_tokenizer=False)
    save_model_folder(tmp_path / "bare", model, None, config, "")
    StartingModel(str(tmp_path / "bare"), ("encoder_only",))
    with pytest.raises(UserError, match=r"has no tokenizer.json"):
        opened(tmp_path / "bare")
