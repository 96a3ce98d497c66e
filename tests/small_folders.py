"""A model folder of each task, with random weights: for tests of what users are told."""

from pathlib import Path
from typing import Any

import torch

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.text.tokenizer import Tokenizer

STACK = StackConfig(num_layers=1, norm="pre", attention=AttentionConfig(num_heads=2))
LABELS = ("no", "yes", "perhaps")


def small_models() -> dict[str, tuple[Any, Tokenizer | None, ModelConfig]]:
    """By the name of its task: a model, its tokenizer and what config.json says."""
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263, mask=True)
    size, special = tokenizer.vocabulary_size, tokenizer.special_tokens

    def encoder(head: Any) -> EncoderOnlyConfig:
        labels = len(LABELS) if head in ("classes", "tags") else 0
        return EncoderOnlyConfig(size, 24, 29, stack=STACK, head=head, num_labels=labels, special_tokens=special)

    settings = {
        "translation": ("encoder_decoder", EncoderDecoderConfig(size, 24, 29, encoder=STACK, decoder=STACK)),
        "language_model": ("decoder_only", DecoderOnlyConfig(size, 24, 29, stack=STACK)),
        "masked_language_model": ("encoder_only", encoder("masked")),
        "classification": ("encoder_only", encoder("classes")),
        "tagging": ("encoder_only", encoder("tags")),
        "encoder": ("encoder_only", encoder("none")),
        "image_classifier": ("vision", VisionConfig((8, 8), (4, 4), 3, len(LABELS), 24, stack=STACK)),
    }
    with_labels = ("classification", "tagging", "image_classifier")
    return {
        task: (
            FAMILIES[family].build(config),
            None if family == "vision" else tokenizer,
            ModelConfig(family, task, config, labels=LABELS if task in with_labels else ()),
        )
        for task, (family, config) in settings.items()
    }


def write_folders(place: Path) -> dict[str, Path]:
    """Write them all."""
    for task, (model, tokenizer, config) in small_models().items():
        save_model_folder(place / task, model, tokenizer, config, "card")
    return {task: place / task for task in small_models()}
