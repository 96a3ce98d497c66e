"""GPT-2 in Hugging Face's layout."""

from __future__ import annotations

from torch import Tensor

from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.mapping import Imported, Tensors, activation
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens


def convert(config: ForeignConfig, tensors: Tensors) -> Imported:
    """GPT2LMHeadModel, or GPT2Model, which has the same weights."""
    settings = _settings(config)
    prefix = "transformer." if "transformer.wte.weight" in tensors else ""
    # The causal mask, which old files contain, and the output layer if it is a copy of the embedding.
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
            found |= _transposed(tensors.take_layer(f"{theirs}.{name}", f"{ours}.{place}", 2))
    return Imported("decoder_only", "language_model", settings, found)


def _settings(config: ForeignConfig) -> DecoderOnlyConfig:
    config.require("scale_attn_by_inverse_layer_idx", False, False)
    config.require("add_cross_attention", False, False)
    vocabulary = config.integer("vocab_size")
    end = config.token("eos_token_id", 50256, vocabulary)
    has_start = config.value("bos_token_id") is not None
    start = config.token("bos_token_id", end, vocabulary)
    return DecoderOnlyConfig(
        vocabulary_size=vocabulary,
        width=config.integer("n_embd"),
        max_length=config.integer("n_positions", lowest=2),
        tied_output=config.flag("tie_word_embeddings", True),
        embedding=EmbeddingConfig(scaled=False),
        stack=StackConfig(
            num_layers=config.integer("n_layer"),
            norm="pre",
            dropout=config.share("resid_pdrop", 0.1),
            attention=AttentionConfig(
                num_heads=config.integer("n_head"),
                scaled=config.flag("scale_attn_weights", True),
                dropout=config.share("attn_pdrop", 0.1),
            ),
            feed_forward=FeedForwardConfig(
                config.optional_integer("n_inner"), activation(config, "activation_function", "gelu_new")
            ),
            norm_epsilon=config.number("layer_norm_epsilon", 1e-5),
        ),
        special_tokens=SpecialTokens(
            pad=config.token("pad_token_id", end, vocabulary),
            start=start,
            end=end,
            text_start=start if has_start else None,
        ),
    )


def _transposed(layer: dict[str, Tensor]) -> dict[str, Tensor]:
    """GPT-2 stores its linear layers input first."""
    return {name: tensor.T if name.endswith("weight") else tensor for name, tensor in layer.items()}
