"""Encoder-decoders for translation; a preset's name is its function's name."""

from __future__ import annotations

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe, paper_recipe


def _translation(width: int, layers: int, heads: int, inner: int, norm: str, dropout: float) -> Settings:
    stack = {
        "num_layers": layers,
        "norm": norm,
        "dropout": dropout,
        "attention": {"num_heads": heads},
        "feed_forward": {"inner_width": inner},
    }
    return {"width": width, "encoder": stack, "decoder": stack}


def translation_tiny() -> Preset:
    """About 2 million parameters: the demo, small corpora, a laptop."""
    return make_preset("encoder_decoder", _translation(128, 4, 4, 256, "pre", 0.2), budget_recipe(128))


def translation_small() -> Preset:
    """About 8 million parameters: a few hundred thousand sentence pairs on a CPU."""
    return make_preset("encoder_decoder", _translation(256, 4, 4, 1024, "pre", 0.2), budget_recipe(256))


def translation_base() -> Preset:
    """The paper's base model and recipe (Table 3, 5.3)."""
    return make_preset("encoder_decoder", _translation(512, 6, 8, 2048, "post", 0.1), paper_recipe(5))


def translation_big() -> Preset:
    """The paper's big model and recipe (Table 3; dropout 0.3 as for English-German)."""
    return make_preset("encoder_decoder", _translation(1024, 6, 16, 4096, "post", 0.3), paper_recipe(20))


def translation_100b() -> Preset:
    """About 112 billion parameters: all languages at once, and more GPUs than one machine has.

    Width, heads and feed-forward network are those of GPT-3 175B, which are known to train and are multiples of
    the degrees of tensor parallelism that a machine has. The encoder has most of the layers, as it reads a sentence
    once, while the decoder runs again for every token that it writes (Kasai et al., 2021). Its vocabulary is as
    large as that of a model of 200 languages (NLLB Team, 2022), and its context is long enough for paragraphs.
    """
    model = _translation(12288, 36, 96, 49152, "pre", 0.1)
    decoder = {**model["decoder"], "num_layers": 18}
    model |= {"decoder": decoder, "vocabulary_size": 256_000, "max_length": 1024}
    recipe = {**budget_recipe(12288), "batches": {"tokens_per_step": 2_000_000}, "ema_decay": 0.0}
    return make_preset("encoder_decoder", model, recipe)
