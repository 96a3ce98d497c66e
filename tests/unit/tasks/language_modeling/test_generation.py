"""Generating text where the rules against repetition leave hardly any token."""

from pathlib import Path

import pytest
import torch

from heedful.config import from_dict
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.loading import load
from heedful.text.tokenizer import UNKNOWN_TOKEN, Tokenizer

LETTERS = "abcdefg"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says one of a few letters at a time, and never ends of its own accord."""
    torch.manual_seed(1)
    tokenizer = Tokenizer.of_characters([LETTERS])
    stack = {"num_layers": 1, "norm": "pre", "attention": {"num_heads": 3}}
    settings = {"vocabulary_size": tokenizer.vocabulary_size, "width": 12, "max_length": 31, "stack": stack}
    config = from_dict(DecoderOnlyConfig, {**settings, "tied_output": False})
    network = DecoderOnly(config)
    with torch.no_grad():
        network.norm.bias.fill_(3.0)
        network.output.weight[tokenizer.special_tokens.end] = -0.5
    made = tmp_path_factory.mktemp("model")
    save_model_folder(made, network, tokenizer, ModelConfig("decoder_only", "language_model", config), "")
    return made


@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("prompt", ["", "b", "bad"])
def test_a_text_ends_once_no_token_is_left(folder: Path, engine: str, temperature: float, prompt: str) -> None:
    model = load(folder, "cpu", engine=engine)
    assert isinstance(model, LanguageModel)
    options = GenerationOptions(max_tokens=29, temperature=temperature, no_repeat_ngram=1, samples=3)
    for text in model.generate(prompt, options):
        text = text.replace(UNKNOWN_TOKEN, "")
        assert set(LETTERS) - set(prompt) <= set(text) and len(set(text)) == len(text)
