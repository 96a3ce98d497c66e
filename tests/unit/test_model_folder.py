import json
from pathlib import Path

import pytest
import torch

from heedful.data.tokenizer import Tokenizer
from heedful.errors import UserError
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.model_folder import ModelConfig, load_model_folder, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.recurrent import Recurrent, RecurrentConfig


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("shared", [True, False])
def test_save_and_load_give_the_same_bits(positions: str, shared: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))
    settings = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 29, positions, shared, shared, stack, stack)
    model = EncoderDecoder(settings).eval()
    config = ModelConfig("encoder_decoder", "translation", settings, source_language="en")
    check_folder(tmp_path, model, tokenizer, config)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("attention", ["additive", "general", "dot"])
def test_save_and_load_give_the_same_recurrent_bits(cell: str, attention: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    settings = RecurrentConfig(tokenizer.vocabulary_size, 11, 14, 29, cell, attention)
    check_folder(tmp_path, Recurrent(settings).eval(), tokenizer, ModelConfig("recurrent", "translation", settings))


def check_folder(tmp_path: Path, model: torch.nn.Module, tokenizer: Tokenizer, config: ModelConfig) -> None:
    """What was saved and loaded computes the same."""
    save_model_folder(tmp_path, model, tokenizer, config, model_card("name", "What.", "use", "More.", {"loss": 1.5}))
    loaded = load_model_folder(tmp_path)
    assert loaded.config == config
    assert loaded.text_tokenizer.encode("red dog") == tokenizer.encode("red dog")
    inputs = torch.randint(3, 259, (3, 7)), torch.tensor([7, 5, 2]), torch.randint(3, 259, (3, 11))
    with torch.inference_mode():
        assert torch.equal(loaded.network(*inputs), model(*inputs))
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_another_format_is_refused(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text(json.dumps({"format": 2}))
    with pytest.raises(UserError, match="reads format 1"):
        load_model_folder(tmp_path)
