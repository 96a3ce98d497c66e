"""JoeyNMT's beam search with heedful's weights."""

from __future__ import annotations

from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.search import search as joeynmt_search
from joeynmt_model import make_model
from padded_batches import END, PAD
from protocol import serve, versions
from torch import Tensor, nn
from translation_loop import translate

from weights import Weights, copy_layer

state: dict[str, Any] = {}


def load(model: str, threads: int) -> dict[str, Any]:
    """Build the model and give it the weights."""
    torch.set_num_threads(threads)
    weights = Weights(model)
    state["model"] = make_model(weights.size, weights.norm, weights.activation, 0.0).eval()
    with torch.no_grad():
        _fill(state["model"], weights)
    return {"versions": versions("torch", "joeynmt")}


def search(source_BS: Tensor, beam: int, shortest: int, longest: int) -> list[list[int]]:
    """Beam search without a length penalty."""
    lengths, indices = (source_BS != PAD).sum(1), torch.arange(len(source_BS))
    batch = Batch(source_BS, lengths, None, None, None, indices, torch.device("cpu"), PAD, END, is_train=False)
    found, _, _ = joeynmt_search(state["model"], batch, longest + 1, beam, -1.0, min_output_length=shortest)
    return [row.tolist() for row in found]


def _fill(model: Any, weights: Weights) -> None:
    model.src_embed.lut.weight.copy_(weights.table_VD)  # which is the target's and the output layer's too
    if weights.output_bias.any():
        model.decoder.output_layer.bias = nn.Parameter(weights.output_bias)
    for part, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            block, own = f"{part}.{number}", {"encoder": "src_src_att", "decoder": "trg_trg_att"}[part]
            first_norm = layer.layer_norm if part == "encoder" else layer.x_layer_norm
            _attention(getattr(layer, own), weights.attention(block, "attention"))
            copy_layer(first_norm, weights.layer(f"{block}.attention_residual.norm"))
            if part == "decoder":
                _attention(layer.src_trg_att, weights.attention(block, "cross_attention"))
                copy_layer(layer.dec_layer_norm, weights.layer(f"{block}.cross_residual.norm"))
            copy_layer(layer.feed_forward.pwff_layer[0], weights.layer(f"{block}.feed_forward.inner_projection"))
            copy_layer(layer.feed_forward.pwff_layer[3], weights.layer(f"{block}.feed_forward.output_projection"))
            copy_layer(layer.feed_forward.layer_norm, weights.layer(f"{block}.feed_forward_residual.norm"))
        if weights.norm == "pre":
            copy_layer(stack.layer_norm, weights.layer(f"{part}_norm"))
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = weights.epsilon


def _attention(theirs: Any, ours: dict[str, dict[str, Tensor]]) -> None:
    for name, part in (("q_layer", "query"), ("k_layer", "key"), ("v_layer", "value"), ("output_layer", "output")):
        copy_layer(getattr(theirs, name), ours[part])


if __name__ == "__main__":
    serve({"load": load, "translate": lambda **arguments: translate(search, **arguments)})
