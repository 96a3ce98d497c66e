"""Marian (OPUS-MT) in Hugging Face's layout."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.mapping import Imported, Tensors, activation
from heedful.layers.positions import SinusoidHalvesPositions
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens


def convert(config: ForeignConfig, tensors: Tensors) -> Imported:
    """MarianMTModel."""
    settings = _settings(config)
    _check_positions(settings.width, tensors)
    # The other names of shared tables hold copies.
    if settings.shared_embeddings:
        tensors.drop(lambda name: name.endswith("embed_tokens.weight"))
    if settings.tied_output:
        tensors.drop(lambda name: name == "lm_head.weight")
    found = _embeddings(settings, tensors)
    for layer in range(settings.encoder.num_layers):
        theirs, ours = f"model.encoder.layers.{layer}", f"encoder.{layer}"
        found |= _self_attention(theirs, ours, tensors) | _feed_forward(theirs, ours, tensors)
    for layer in range(settings.decoder.num_layers):
        theirs, ours = f"model.decoder.layers.{layer}", f"decoder.{layer}"
        found |= _self_attention(theirs, ours, tensors) | _feed_forward(theirs, ours, tensors)
        cross, place = f"{theirs}.encoder_attn", f"{ours}.cross_attention"
        found |= tensors.take_layer(f"{cross}.q_proj", f"{place}.query_projection")
        found |= tensors.take_packed([f"{cross}.k_proj", f"{cross}.v_proj"], f"{place}.key_value_projection")
        found |= tensors.take_layer(f"{cross}.out_proj", f"{place}.output_projection")
        found |= tensors.take_layer(f"{theirs}.encoder_attn_layer_norm", f"{ours}.cross_residual.norm")
    return Imported("encoder_decoder", "translation", settings, found)


def _check_positions(width: int, tensors: Tensors) -> None:
    """Check that the sinusoidal tables, if they are stored at all, are those that we compute."""
    for name in ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"):
        if name in tensors:
            table = tensors.take(name, 2)
            if table.shape[1] != width or not torch.allclose(
                table, SinusoidHalvesPositions(PositionSizes(width, 2, len(table))).table, atol=1e-5
            ):
                raise UserError(f"{name} does not hold the usual sines and cosines, which is not supported")


def _embeddings(settings: EncoderDecoderConfig, tensors: Tensors) -> dict[str, Tensor]:
    # A table that is used in several places has the name of the first of them.
    found = {"output.bias": tensors.take("final_logits_bias", 2)[0]}
    if settings.shared_embeddings:
        return found | {"source_embedding.table.weight": tensors.take("model.shared.weight")}
    found["source_embedding.table.weight"] = tensors.take("model.encoder.embed_tokens.weight")
    found["target_embedding.table.weight"] = tensors.take("model.decoder.embed_tokens.weight")
    if not settings.tied_output:
        found["output.weight"] = tensors.take("lm_head.weight")
    return found


def _self_attention(theirs: str, ours: str, tensors: Tensors) -> dict[str, Tensor]:
    inputs = [f"{theirs}.self_attn.{name}_proj" for name in "qkv"]
    return {
        **tensors.take_packed(inputs, f"{ours}.attention.query_key_value_projection"),
        **tensors.take_layer(f"{theirs}.self_attn.out_proj", f"{ours}.attention.output_projection"),
        **tensors.take_layer(f"{theirs}.self_attn_layer_norm", f"{ours}.attention_residual.norm"),
    }


def _feed_forward(theirs: str, ours: str, tensors: Tensors) -> dict[str, Tensor]:
    return {
        **tensors.take_layer(f"{theirs}.fc1", f"{ours}.feed_forward.inner_projection"),
        **tensors.take_layer(f"{theirs}.fc2", f"{ours}.feed_forward.output_projection"),
        **tensors.take_layer(f"{theirs}.final_layer_norm", f"{ours}.feed_forward_residual.norm"),
    }


def _settings(config: ForeignConfig) -> EncoderDecoderConfig:
    vocabulary = config.integer("vocab_size")
    if config.integer("decoder_vocab_size", vocabulary) != vocabulary:
        raise config.error("decoder_vocab_size is not vocab_size: two vocabularies are not supported")
    config.require("static_position_embeddings", True, True)
    config.require("normalize_before", False, False)
    return EncoderDecoderConfig(
        vocabulary_size=vocabulary,
        width=config.integer("d_model"),
        max_length=config.integer("max_position_embeddings"),
        positions="sinusoid_halves",
        shared_embeddings=config.flag("share_encoder_decoder_embeddings", True),
        tied_output=config.flag("tie_word_embeddings", True),
        encoder=_stack(config, "encoder"),
        decoder=_stack(config, "decoder"),
        output_bias=True,
        embedding=EmbeddingConfig(scaled=config.flag("scale_embedding", False)),
        special_tokens=SpecialTokens(
            pad=config.token("pad_token_id", None, vocabulary),
            start=config.token("decoder_start_token_id", None, vocabulary),
            end=config.token("eos_token_id", None, vocabulary),
        ),
    )


def _stack(config: ForeignConfig, part: str) -> StackConfig:
    return StackConfig(
        num_layers=config.integer(f"{part}_layers"),
        dropout=config.share("dropout", 0.1),
        attention=AttentionConfig(
            num_heads=config.integer(f"{part}_attention_heads"), dropout=config.share("attention_dropout", 0.0)
        ),
        feed_forward=FeedForwardConfig(
            config.integer(f"{part}_ffn_dim"),
            activation(config, "activation_function", "gelu"),
            dropout=config.share("activation_dropout", 0.0),
        ),
    )
