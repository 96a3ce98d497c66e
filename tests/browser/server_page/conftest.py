"""A server process with a small model of each kind, and its page in the browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from selenium.webdriver import Chrome

from heedful.config import from_dict
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.text.tokenizer import Tokenizer
from server_page import Page
from server_process import serving

TEXT = "the red dog is in the sea, and the sun is blue.\n"
# Task -> the head that an encoder needs for it, and its labels.
ENCODERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "classification": ("classes", ("yes", "no", "maybe")),
    "tagging": ("tags", ("O", "ANIMAL")),
    "masked_language_model": ("masked", ()),
    "encoder": ("none", ()),
}


def save_random_models(folder: Path) -> list[Path]:
    """A model of each kind but translation, with random weights: what the page shows of them is all the same."""
    torch.manual_seed(1)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))
    tokenizer = Tokenizer.train([TEXT], 283, whole_texts=True)
    settings = {"vocabulary_size": tokenizer.vocabulary_size, "width": 12, "max_length": 61}
    language = from_dict(
        DecoderOnlyConfig, {**settings, "stack": {"num_layers": 2, "norm": "pre", "attention": {"num_heads": 3}}}
    )
    config = ModelConfig("decoder_only", "language_model", language)
    save_model_folder(folder / "language-model", DecoderOnly(language), tokenizer, config, "card")
    words = Tokenizer.train([TEXT], 283, mask=True)
    for task, (head, labels) in ENCODERS.items():
        encoder = EncoderOnlyConfig(
            words.vocabulary_size, 12, 61, stack=stack, head=head, num_labels=len(labels),
            embedding=EmbeddingConfig(segments=2), special_tokens=words.special_tokens,
        )  # fmt: skip
        config = ModelConfig("encoder_only", task, encoder, labels=labels)
        save_model_folder(folder / task, EncoderOnly(encoder), words, config, "card")
    vision = VisionConfig((15, 20), (5, 4), 3, 7, 24, stack=stack)
    config = ModelConfig("vision", "image_classifier", vision, labels=tuple("abcdefg"), has_tokenizer=False)
    save_model_folder(folder / "vision", Vision(vision), None, config, "card")
    return sorted(folder.iterdir())


@pytest.fixture(scope="session")
def address(one_browser: Chrome, quick_copy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    models = save_random_models(tmp_path_factory.mktemp("served"))
    with serving([f"copy={quick_copy_model}", *models]) as address:
        yield address


@pytest.fixture
def page(address: str, browser: Chrome) -> Page:
    return Page(browser, address)


@pytest.fixture
def quiet_page(page: Page, browser_log) -> Iterator[Page]:
    """The page in a test after which the console is empty, and no other host was asked for anything."""
    yield page
    assert browser_log.hosts() == {page.address.removeprefix("http://")}
    assert browser_log.messages == []
