"""XLNet in Hugging Face's layout."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.config import shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.mapping import Imported, Tensors, activation
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.text.special_tokens import SpecialTokens

# No configuration says how long the segments in training were; the paper's had 512 tokens.
SEGMENT_LENGTH = 512


def convert(config: ForeignConfig, tensors: Tensors) -> Imported:
    """XLNetLMHeadModel."""
    settings = _settings(config)
    tensors.drop(lambda name: name == "lm_loss.weight")  # a copy of the embedding
    found = {
        "embedding.weight": tensors.take("transformer.word_embedding.weight"),
        "query_embedding": tensors.take("transformer.mask_emb", 3).flatten(),
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
        return tensors.take(f"{theirs}.{name}", 3).flatten(1)  # D H K -> D (H K)

    def packed(names: str) -> Tensor:
        parts = [projection(name).T for name in names]
        if any(part.shape[1] != parts[0].shape[1] for part in parts):
            raise UserError(f"the projections {', '.join(names)} of {theirs} have inputs of different widths")
        return torch.cat(parts)

    return {
        f"{ours}.query_key_value_projection.weight": packed("qkv"),
        f"{ours}.distance_projection.weight": projection("r").T,
        f"{ours}.output_projection.weight": projection("o"),
        f"{ours}.content_bias": tensors.take(f"{theirs}.r_w_bias"),
        f"{ours}.position_bias": tensors.take(f"{theirs}.r_r_bias"),
        f"{ours}.segment_bias": tensors.take(f"{theirs}.r_s_bias"),
        f"{ours}.segment_embedding": tensors.take(f"{theirs}.seg_embed"),
    }


def _settings(config: ForeignConfig) -> XLNetConfig:
    config.require("same_length", False, False)
    config.require("bi_data", False, False)
    config.require("untie_r", True, True)
    config.require("tie_word_embeddings", True, True)
    vocabulary = config.integer("vocab_size")
    memory, longest = config.integer("mem_len", 0, 0), config.integer("clamp_len", -1, -1)
    dropout, kind = config.share("dropout", 0.1), config.text("attn_type", "bi")
    if kind not in ("bi", "uni"):
        raise config.error(f"attn_type is {shown(kind)}, and only 'bi' and 'uni' are supported")
    start = config.token("bos_token_id", 1, vocabulary)
    return XLNetConfig(
        vocabulary_size=vocabulary,
        width=config.integer("d_model"),
        max_length=SEGMENT_LENGTH + memory,
        memory_length=memory,
        causal=kind == "uni",
        clamp_length=longest if longest > 0 else None,
        segments=True,
        stack=StackConfig(
            num_layers=config.integer("n_layer"),
            dropout=dropout,
            attention=AttentionConfig(
                config.integer("n_head"), key_width=config.optional_integer("d_head"), bias=False, dropout=dropout
            ),
            feed_forward=FeedForwardConfig(
                config.integer("d_inner"), activation(config, "ff_activation", "gelu"), dropout=dropout
            ),
            norm_epsilon=config.number("layer_norm_eps", 1e-12),
        ),
        special_tokens=SpecialTokens(
            config.token("pad_token_id", 5, vocabulary),
            start,
            config.token("eos_token_id", 2, vocabulary),
            text_start=start,
        ),
    )
