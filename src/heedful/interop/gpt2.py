"""GPT-2 in Hugging Face's layout."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from heedful.interop.mapping import Imported, Tensors, activation, require_setting
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.embeddings import EmbeddingConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.models.decoder_only import DecoderOnlyConfig
from heedful.special_tokens import SpecialTokens


def convert(config: dict[str, Any], tensors: Tensors) -> Imported:
    """GPT2LMHeadModel, or GPT2Model, which has the same weights."""
    settings = _settings(config)
    prefix = "transformer." if "transformer.wte.weight" in tensors else ""
    # The causal mask, which old files hold, and the output layer if it is the embedding once more.
    tensors.drop(lambda name: name.endswith((".attn.bias", ".attn.masked_bias")))
    if settings.tied_output:
        tensors.drop(lambda name: name == "lm_head.weight")
    found = {
        "embedding.table.weight": tensors.take(f"{prefix}wte.weight"),
        "positions.table": tensors.take(f"{prefix}wpe.weight"),
        **tensors.take_layer(f"{prefix}ln_f", "norm"),
    }
    if not settings.tied_output:
        found["output.weight"] = tensors.take("lm_head.weight")
    for layer in range(settings.stack.num_layers):
        theirs, ours = f"{prefix}h.{layer}", f"blocks.{layer}"
        found |= tensors.take_layer(f"{theirs}.ln_1", f"{ours}.attention_residual.norm")
        found |= tensors.take_layer(f"{theirs}.ln_2", f"{ours}.feed_forward_residual.norm")
        for name, place in (
            ("attn.c_attn", "attention.query_key_value_projection"),
            ("attn.c_proj", "attention.output_projection"),
            ("mlp.c_fc", "feed_forward.inner_projection"),
            ("mlp.c_proj", "feed_forward.output_projection"),
        ):
            found |= _transposed(tensors.take_layer(f"{theirs}.{name}", f"{ours}.{place}"))
    return Imported("decoder_only", "language_model", settings, found)


def _settings(config: dict[str, Any]) -> DecoderOnlyConfig:
    require_setting(config, "scale_attn_by_inverse_layer_idx", False, False)
    require_setting(config, "add_cross_attention", False, False)
    end = config.get("eos_token_id", 50256)
    start, pad = config.get("bos_token_id"), config.get("pad_token_id")
    return DecoderOnlyConfig(
        vocabulary_size=config["vocab_size"],
        width=config["n_embd"],
        max_length=config["n_positions"],
        tied_output=config.get("tie_word_embeddings", True),
        embedding=EmbeddingConfig(scaled=False),
        stack=StackConfig(
            num_layers=config["n_layer"],
            norm="pre",
            dropout=config.get("resid_pdrop", 0.1),
            attention=AttentionConfig(
                num_heads=config["n_head"],
                scaled=config.get("scale_attn_weights", True),
                dropout=config.get("attn_pdrop", 0.1),
            ),
            feed_forward=FeedForwardConfig(
                config.get("n_inner"), activation(config.get("activation_function", "gelu_new"))
            ),
            norm_epsilon=config.get("layer_norm_epsilon", 1e-5),
        ),
        special_tokens=SpecialTokens(
            pad=end if pad is None else pad, start=end if start is None else start, end=end, text_start=start
        ),
    )


def _transposed(layer: dict[str, Tensor]) -> dict[str, Tensor]:
    """GPT-2 stores its linear layers input first."""
    return {name: tensor.T if name.endswith("weight") else tensor for name, tensor in layer.items()}
