"""XLNet in Hugging Face's layout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.interop.mapping import Imported, Tensors, activation, require_setting
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.models.xlnet_config import XLNetConfig
from heedful.special_tokens import SpecialTokens

# No configuration says how long the segments of the training were; the paper's had 512 tokens.
SEGMENT_LENGTH = 512


def convert(config: dict[str, Any], tensors: Tensors) -> Imported:
    """XLNetLMHeadModel."""
    settings = _settings(config)
    tensors.drop(lambda name: name == "lm_loss.weight")  # the embedding once more
    found = {
        "embedding.weight": tensors.take("transformer.word_embedding.weight"),
        "query_embedding": tensors.take("transformer.mask_emb").flatten(),
        "output.bias": tensors.take("lm_loss.bias"),
    }
    for layer in range(settings.stack.num_layers):
        theirs, ours = f"transformer.layer.{layer}", f"blocks.{layer}"
        found |= _attention(tensors, f"{theirs}.rel_attn", f"{ours}.attention")
        for name, place in (
            ("rel_attn.layer_norm", "attention_residual.norm"),
            ("ff.layer_1", "feed_forward.inner_projection"),
            ("ff.layer_2", "feed_forward.output_projection"),
            ("ff.layer_norm", "feed_forward_residual.norm"),
        ):
            found |= tensors.take_layer(f"{theirs}.{name}", f"{ours}.{place}")
    return Imported("xlnet", "language_model", settings, found)


def _attention(tensors: Tensors, theirs: str, ours: str) -> dict[str, Tensor]:
    def projection(name: str) -> Tensor:
        return tensors.take(f"{theirs}.{name}").flatten(1)  # D H K -> D (H K)

    return {
        f"{ours}.query_key_value_projection.weight": torch.cat([projection(name).T for name in "qkv"]),
        f"{ours}.distance_projection.weight": projection("r").T,
        f"{ours}.output_projection.weight": projection("o"),
        f"{ours}.content_bias": tensors.take(f"{theirs}.r_w_bias"),
        f"{ours}.position_bias": tensors.take(f"{theirs}.r_r_bias"),
        f"{ours}.segment_bias": tensors.take(f"{theirs}.r_s_bias"),
        f"{ours}.segment_embedding": tensors.take(f"{theirs}.seg_embed"),
    }


def _settings(config: dict[str, Any]) -> XLNetConfig:
    require_setting(config, "same_length", False, False)
    require_setting(config, "bi_data", False, False)
    require_setting(config, "untie_r", True, True)
    require_setting(config, "tie_word_embeddings", True, True)
    memory, longest, dropout = config.get("mem_len") or 0, config.get("clamp_len", -1), config.get("dropout", 0.1)
    start = config.get("bos_token_id", 1)
    return XLNetConfig(
        vocabulary_size=config["vocab_size"],
        width=config["d_model"],
        max_length=SEGMENT_LENGTH + memory,
        memory_length=memory,
        causal=config.get("attn_type", "bi") == "uni",
        clamp_length=longest if longest > 0 else None,
        segments=True,
        stack=StackConfig(
            num_layers=config["n_layer"],
            dropout=dropout,
            attention=AttentionConfig(config["n_head"], key_width=config.get("d_head"), bias=False, dropout=dropout),
            feed_forward=FeedForwardConfig(
                config["d_inner"], activation(config.get("ff_activation", "gelu")), dropout=dropout
            ),
            norm_epsilon=config.get("layer_norm_eps", 1e-12),
        ),
        special_tokens=SpecialTokens(
            config.get("pad_token_id", 5), start, config.get("eos_token_id", 2), text_start=start
        ),
    )
