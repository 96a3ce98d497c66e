"""Encoder-only models; a preset's name is its function's name."""

from __future__ import annotations

from typing import Any

from heedful.presets.recipes import Settings, budget_recipe


def _recipe(width: int) -> Settings:
    schedule = {"kind": "decay", "learning_rate": round(1e-3 * 128 / width, 6)}
    return {**budget_recipe(width), "schedule": schedule, "optimizer": {"beta2": 0.98, "weight_decay": 0.1}}


def _encoder(width: int, layers: int, heads: int, inner: int) -> Settings:
    """What learns from few texts: pre-norm, rotary positions, phrases of three, mean pooling, tokens dropped."""
    stack: Settings = {"num_layers": layers, "norm": "pre", "dropout": 0.2, "attention": {"num_heads": heads}}
    stack["feed_forward"] = {"inner_width": inner, "activation": "gelu"}
    model = {"width": width, "positions": "rotary", "stack": stack, "convolution": 3, "token_dropout": 0.2}
    return {"family": "encoder_only", "model": model, "training": _recipe(width)}


def encoder_tiny() -> Settings:
    """About 2 million parameters: some thousand texts, a laptop."""
    return _encoder(128, 2, 4, 256)


def encoder_small() -> Settings:
    """About 7 million parameters: pretraining on a CPU."""
    return _encoder(256, 4, 4, 1024)


def _masked(preset: Settings) -> Settings:
    """The same model, to be pretrained: hidden words are hard to guess, which takes many quick steps, not a damper."""
    width = preset["model"]["width"]
    preset["model"]["stack"]["dropout"] = 0.1
    preset["training"]["schedule"] = {"kind": "decay", "learning_rate": round(4e-3 * 128 / width, 6)}
    preset["training"]["batches"] = {"tokens_per_step": 4000}
    return preset


def masked_tiny() -> Settings:
    """`encoder_tiny`, to be pretrained on up to some ten million tokens."""
    return _masked(encoder_tiny())


def masked_small() -> Settings:
    """`encoder_small`, to be pretrained."""
    return _masked(encoder_small())


def _bert(width: int, layers: int, heads: int) -> Settings:
    """BERT (Devlin et al., 2019): post-norm, learned positions, two kinds of segment, a pooled class token."""
    stack: dict[str, Any] = {"num_layers": layers, "norm": "post", "dropout": 0.1, "norm_epsilon": 1e-12}
    stack["attention"] = {"num_heads": heads, "dropout": 0.1}
    stack["feed_forward"] = {"activation": "gelu"}
    model = {"vocabulary_size": 30522, "width": width, "stack": stack, "pooling": "class_token", "pooler": True}
    model["embedding"] = {"scaled": False, "segments": 2, "norm": True}
    training = {**_recipe(width), "schedule": {"kind": "decay", "learning_rate": round(0.0768 / width, 6)}}
    return {"family": "encoder_only", "model": model, "training": training}


def bert_base() -> Settings:
    """BERT base, 110 million parameters."""
    return _bert(768, 12, 12)


def bert_large() -> Settings:
    """BERT large, 340 million parameters."""
    return _bert(1024, 24, 16)
