"""Hugging Face's generate with heedful's weights: Marian where norms come last, M2M100 where they come first."""

from __future__ import annotations

from typing import Any

import torch
from padded_batches import END, PAD, START
from protocol import serve, versions
from torch import Tensor, nn
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel
from translation_loop import translate

from weights import LONGEST, Weights, copy_layer

state: dict[str, Any] = {}


def load(model: str, threads: int) -> dict[str, Any]:
    """Build the model and give it the weights."""
    torch.set_num_threads(threads)
    weights = Weights(model)
    state["model"] = make_model(weights).eval()
    return {"versions": versions("torch", "transformers")}


def search(source_BS: Tensor, beam: int, shortest: int, longest: int) -> list[list[int]]:
    """Beam search without a length penalty."""
    found = state["model"].generate(
        source_BS,
        attention_mask=(source_BS != PAD).long(),
        num_beams=beam,
        do_sample=False,
        length_penalty=0.0,
        early_stopping=True,
        min_new_tokens=shortest,
        max_new_tokens=longest + 1,  # which counts the end
    )
    return [row[1:] for row in found.tolist()]


def make_model(weights: Weights) -> Any:
    """A model of the library that computes what heedful's does."""
    size = weights.size
    shared = {
        "vocab_size": size["vocabulary"],
        "d_model": size["width"],
        "encoder_layers": size["layers"],
        "decoder_layers": size["layers"],
        "encoder_attention_heads": size["heads"],
        "decoder_attention_heads": size["heads"],
        "encoder_ffn_dim": size["inner"],
        "decoder_ffn_dim": size["inner"],
        "activation_function": weights.activation,
        "max_position_embeddings": LONGEST,
        "scale_embedding": True,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "bos_token_id": None,
        "decoder_start_token_id": START,
        "forced_eos_token_id": None,
    }
    if weights.norm == "post":
        model = MarianMTModel(MarianConfig(**shared))
    else:
        model = M2M100ForConditionalGeneration(M2M100Config(**shared))
    with torch.no_grad():
        _fill(model, weights)
    return model


def _fill(model: Any, weights: Weights) -> None:
    _positions(model, weights)
    model.model.shared.weight.copy_(weights.table_VD)
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_tokens.weight.copy_(weights.table_VD)
    model.lm_head.weight.copy_(weights.table_VD)
    if weights.norm == "post":
        model.final_logits_bias.copy_(weights.output_bias)
    elif weights.output_bias.any():
        model.lm_head.bias = nn.Parameter(weights.output_bias)
    for part, stack in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        for number, layer in enumerate(stack.layers):
            _block(layer, weights, f"{part}.{number}")
        if weights.norm == "pre":
            copy_layer(stack.layer_norm, weights.layer(f"{part}_norm"))


def _positions(model: Any, weights: Weights) -> None:
    """Both have sines before cosines, and M2M100 other rates: they get the table that the weights were trained with."""
    table = weights.positions()
    for stack in (model.model.encoder, model.model.decoder):
        if weights.norm == "post":
            stack.embed_positions.weight.copy_(table)
        else:
            # Position 0 is behind the row of the padding.
            stack.embed_positions.weights[PAD + 1 : PAD + 1 + LONGEST] = table


def _block(layer: Any, weights: Weights, block: str) -> None:
    _attention(layer.self_attn, weights.attention(block, "attention"))
    copy_layer(layer.self_attn_layer_norm, weights.layer(f"{block}.attention_residual.norm"))
    if block.startswith("decoder"):
        _attention(layer.encoder_attn, weights.attention(block, "cross_attention"))
        copy_layer(layer.encoder_attn_layer_norm, weights.layer(f"{block}.cross_residual.norm"))
    copy_layer(layer.fc1, weights.layer(f"{block}.feed_forward.inner_projection"))
    copy_layer(layer.fc2, weights.layer(f"{block}.feed_forward.output_projection"))
    copy_layer(layer.final_layer_norm, weights.layer(f"{block}.feed_forward_residual.norm"))
    for module in layer.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = weights.epsilon


def _attention(theirs: Any, ours: dict[str, dict[str, Tensor]]) -> None:
    for name, part in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output")):
        copy_layer(getattr(theirs, name), ours[part])


if __name__ == "__main__":
    serve({"load": load, "translate": lambda **arguments: translate(search, **arguments)})
