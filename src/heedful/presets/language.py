"""Decoder-only language models; a preset's name is its function's name."""

from __future__ import annotations

from typing import Any

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe


def _stack(layers: int, heads: int, dropout: float, **attention: Any) -> Settings:
    return {"num_layers": layers, "norm": "pre", "dropout": dropout, "attention": {"num_heads": heads, **attention}}


def _modern(width: int, layers: int, heads: int, shared: int, inner: int, context: int, dropout: float) -> Settings:
    """Rotary positions, RMS norms, SwiGLU, shared key/value heads, and no biases."""
    stack = _stack(layers, heads, dropout, num_key_value_heads=shared, bias=False)
    stack |= {"norm_kind": "rms", "feed_forward": {"inner_width": inner, "activation": "swiglu", "bias": False}}
    return {"width": width, "max_length": context, "positions": "rotary", "stack": stack}


def _language_recipe(width: int) -> Settings:
    recipe = budget_recipe(width)
    return {**recipe, "label_smoothing": 0.0, "optimizer": {"beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}}


def language_tiny() -> Preset:
    """About a million parameters and today's usual blocks: a book, a laptop."""
    model = _modern(128, 4, 4, 2, 352, 256, 0.1)
    return make_preset("decoder_only", model, _language_recipe(128))


def language_small() -> Preset:
    """About 10 million parameters and today's usual blocks: a few books, a CPU."""
    model = _modern(320, 6, 5, 5, 864, 512, 0.1)
    return make_preset("decoder_only", model, _language_recipe(320))


def _gpt(width: int, layers: int, heads: int, context: int, recipe: Settings | None = None, **stack: Any) -> Preset:
    blocks = {**_stack(layers, heads, 0.1), "feed_forward": {"activation": "gelu_tanh"}, **stack}
    schedule = {"kind": "decay", "learning_rate": round(0.46 / width, 6)}
    training = {**_language_recipe(width), "schedule": schedule, **(recipe or {})}
    return make_preset(
        "decoder_only",
        {"vocabulary_size": 50257, "width": width, "max_length": context, "stack": blocks},
        training,
    )


def gpt2_small() -> Preset:
    """GPT-2, 124 million parameters (Radford et al., 2019)."""
    return _gpt(768, 12, 12, 1024)


def gpt2_medium() -> Preset:
    """GPT-2, 355 million parameters."""
    return _gpt(1024, 24, 16, 1024)


def gpt2_large() -> Preset:
    """GPT-2, 774 million parameters."""
    return _gpt(1280, 36, 20, 1024)


def gpt2_xl() -> Preset:
    """GPT-2, 1.5 billion parameters."""
    return _gpt(1600, 48, 25, 1024)


def _gpt3(width: int, layers: int, heads: int, head_width: int, tokens: float, rate: float) -> Preset:
    """GPT-3 with its tokens per step and rate (Brown et al., 2020, Table 2.1 and appendix B), and no moving average.

    Every other layer sees a local window, whose size is not published.
    """
    attention = {"num_heads": heads, "key_width": head_width}
    recipe = {
        "schedule": {"kind": "decay", "learning_rate": rate},
        "batches": {"tokens_per_step": int(tokens * 1e6)},
        "optimizer": {"beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1},
        "ema_decay": 0.0,
    }
    return _gpt(width, layers, heads, 2048, recipe, attention=attention, local_window=256)


def gpt3_small() -> Preset:
    """GPT-3, 125 million parameters."""
    return _gpt3(768, 12, 12, 64, 0.5, 6e-4)


def gpt3_medium() -> Preset:
    """GPT-3, 350 million parameters."""
    return _gpt3(1024, 24, 16, 64, 0.5, 3e-4)


def gpt3_large() -> Preset:
    """GPT-3, 760 million parameters."""
    return _gpt3(1536, 24, 16, 96, 0.5, 2.5e-4)


def gpt3_xl() -> Preset:
    """GPT-3, 1.3 billion parameters."""
    return _gpt3(2048, 24, 24, 128, 1, 2e-4)


def gpt3_2_7b() -> Preset:
    """GPT-3, 2.7 billion parameters."""
    return _gpt3(2560, 32, 32, 80, 1, 1.6e-4)


def gpt3_6_7b() -> Preset:
    """GPT-3, 6.7 billion parameters."""
    return _gpt3(4096, 32, 32, 128, 2, 1.2e-4)


def gpt3_13b() -> Preset:
    """GPT-3, 13 billion parameters."""
    return _gpt3(5140, 40, 40, 128, 2, 1e-4)


def gpt3_175b() -> Preset:
    """GPT-3, 175 billion parameters."""
    return _gpt3(12288, 96, 96, 128, 3.2, 0.6e-4)
