"""Encoder-only models; a preset's name is its function's name."""

from __future__ import annotations

from typing import Any

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe


def _recipe(width: int) -> Settings:
    schedule = {"kind": "decay", "learning_rate": round(1e-3 * 128 / width, 6)}
    return {**budget_recipe(width), "schedule": schedule, "optimizer": {"beta2": 0.98, "weight_decay": 0.1}}


def _model(width: int, layers: int, heads: int, inner: int, dropout: float) -> Settings:
    """What learns from few texts: pre-norm, rotary positions, phrases of three, mean pooling, tokens dropped."""
    stack: Settings = {"num_layers": layers, "norm": "pre", "dropout": dropout, "attention": {"num_heads": heads}}
    stack["feed_forward"] = {"inner_width": inner, "activation": "gelu"}
    return {"width": width, "positions": "rotary", "stack": stack, "convolution": 3, "token_dropout": 0.2}


def encoder_tiny() -> Preset:
    """About 2 million parameters: a few thousand texts, a laptop."""
    return make_preset("encoder_only", _model(128, 2, 4, 256, 0.2), _recipe(128))


def encoder_small() -> Preset:
    """About 7 million parameters: pretraining on a CPU."""
    return make_preset("encoder_only", _model(256, 4, 4, 1024, 0.2), _recipe(256))


def _pretraining_recipe(width: int) -> Settings:
    """Hidden words are hard to guess: that takes many quick steps, not a low rate."""
    schedule = {"kind": "decay", "learning_rate": round(4e-3 * 128 / width, 6)}
    return {**_recipe(width), "schedule": schedule, "batches": {"tokens_per_step": 4000}}


def masked_tiny() -> Preset:
    """`encoder_tiny`, to be pretrained on up to about ten million tokens."""
    return make_preset("encoder_only", _model(128, 2, 4, 256, 0.1), _pretraining_recipe(128))


def masked_small() -> Preset:
    """`encoder_small`, to be pretrained."""
    return make_preset("encoder_only", _model(256, 4, 4, 1024, 0.1), _pretraining_recipe(256))


def _bert(width: int, layers: int, heads: int) -> Preset:
    """BERT (Devlin et al., 2019): post-norm, learned positions, two kinds of segment, a pooled class token."""
    stack: dict[str, Any] = {"num_layers": layers, "norm": "post", "dropout": 0.1, "norm_epsilon": 1e-12}
    stack["attention"] = {"num_heads": heads, "dropout": 0.1}
    stack["feed_forward"] = {"activation": "gelu"}
    model = {"vocabulary_size": 30522, "width": width, "stack": stack, "pooling": "class_token", "pooler": True}
    model["embedding"] = {"scaled": False, "segments": 2, "norm": True}
    training = {**_recipe(width), "schedule": {"kind": "decay", "learning_rate": round(0.0768 / width, 6)}}
    return make_preset("encoder_only", model, training)


def bert_base() -> Preset:
    """BERT base, 110 million parameters."""
    return _bert(768, 12, 12)


def bert_large() -> Preset:
    """BERT large, 340 million parameters."""
    return _bert(1024, 24, 16)
