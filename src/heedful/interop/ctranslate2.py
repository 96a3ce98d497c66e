"""Translation models for CTranslate2, which runs them from C++."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.blocks import CrossBlock, SelfBlock
from heedful.layers.feed_forward import FeedForward
from heedful.layers.multi_head_attention import AttentionHeads
from heedful.layers.positions import PositionScheme, scheme_of
from heedful.model_folder import LoadedModel
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig

# Our names for the activations, and CTranslate2's; SwiGLU applies the same function to one of two halves.
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "swiglu": "SWISH"}
# Positions are given as a table, which needs an end; schemes without one get at least this many.
FEWEST_POSITIONS = 1024


def convert(loaded: LoadedModel) -> Any:
    """The model as a `ctranslate2.specs.TransformerSpec`, with its vocabulary."""
    from ctranslate2.specs import TransformerSpec

    if loaded.config.family != "encoder_decoder":
        raise UserError(
            f"CTranslate2 takes translation models of the family encoder_decoder, not {loaded.config.family}"
        )
    model: EncoderDecoder = loaded.network
    settings = model.config
    _refuse_what_it_has_not(settings)
    spec = TransformerSpec(_stack(settings, "encoder"), _stack(settings, "decoder"))
    _embeddings(model, spec)
    for theirs, encoder_block in zip(spec.encoder.layer, model.encoder, strict=True):
        assert isinstance(encoder_block, SelfBlock)
        _self_block(theirs, encoder_block)
    for theirs, decoder_block in zip(spec.decoder.layer, model.decoder, strict=True):
        _self_block(theirs, decoder_block)
        _cross_attention(theirs.attention, decoder_block)
    for stack, norm in ((spec.encoder, model.encoder_norm), (spec.decoder, model.decoder_norm)):
        if not isinstance(norm, nn.Identity):
            _norm(stack.layer_norm, norm)
    _vocabulary(loaded, spec)
    return spec


def _refuse_what_it_has_not(settings: EncoderDecoderConfig) -> None:
    """Raise a UserError that names the first setting without a counterpart in CTranslate2."""
    stacks = {"encoder": settings.encoder, "decoder": settings.decoder}
    found = [
        (f"model.{name}.{what}", why) for name, stack in stacks.items() for what, why in _missing(stack, settings.width)
    ]
    scheme = scheme_of(settings.positions)
    if scheme.uses("rotate") or scheme.uses("bias"):
        found.append(("model.positions", f"{settings.positions} positions"))
    if settings.encoder.norm_epsilon != settings.decoder.norm_epsilon:
        found.append(("model.decoder.norm_epsilon", "an epsilon of the decoder's own"))
    if settings.embedding.norm or settings.embedding.segments:
        found.append(("model.embedding", "normalised embeddings, or embeddings of segments"))
    for where, what in found:
        raise UserError(f"this model cannot be exported: {where} asks for {what}, which CTranslate2 does not have")


def _missing(stack: StackConfig, width: int) -> list[tuple[str, str]]:
    attention = stack.attention
    shared = attention.num_key_value_heads or attention.num_heads
    own_values = attention.value_width not in (None, attention.width_per_head(width))
    return [
        (where, what)
        for there, where, what in (
            (attention.scoring != "dot", "attention.scoring", f"{attention.scoring} scores"),
            (own_values, "attention.value_width", "values of another width than keys"),
            (shared != attention.num_heads, "attention.num_key_value_heads", "heads that share keys and values"),
            (stack.local_window is not None, "local_window", "layers that see only a window"),
        )
        if there
    ]


def _stack(settings: EncoderDecoderConfig, part: str) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    stack: StackConfig = getattr(settings, part)
    activation = stack.feed_forward.activation
    make = transformer_spec.TransformerEncoderSpec if part == "encoder" else transformer_spec.TransformerDecoderSpec
    return make(
        stack.num_layers,
        stack.attention.num_heads,
        pre_norm=stack.norm == "pre",
        activation=common_spec.Activation[ACTIVATIONS[activation]],
        ffn_glu=activation == "swiglu",
        rms_norm=stack.norm_kind == "rms",
        head_dim=stack.attention.key_width,
    )


def _embeddings(model: EncoderDecoder, spec: Any) -> None:
    settings = model.config
    sides = ((spec.encoder, model.source_embedding), (spec.decoder, model.target_embedding))
    for theirs, ours in sides:
        theirs.scale_embeddings = settings.embedding.scaled
        theirs.position_encodings.encodings = _positions(ours.positions)
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.table.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.table.weight)
    _linear(spec.decoder.projection, model.output)


def _positions(scheme: PositionScheme) -> Any:
    """What the scheme adds to embeddings, position by position."""
    table = getattr(scheme, "table", None)
    if scheme.extends:
        longer = type(scheme)(replace(scheme.sizes, length=max(scheme.length, FEWEST_POSITIONS)))
        table = getattr(longer, "table", None)
    return np.zeros((FEWEST_POSITIONS, scheme.sizes.width), np.float32) if table is None else _array(table)


def _self_block(theirs: Any, ours: SelfBlock | CrossBlock) -> None:
    _attention(theirs.self_attention, ours.attention, ours.attention_residual.norm)
    _linear(theirs.self_attention.linear[0], ours.attention.query_key_value_projection)
    _norm(theirs.ffn.layer_norm, ours.feed_forward_residual.norm)
    _feed_forward(theirs.ffn, ours.feed_forward)


def _cross_attention(theirs: Any, ours: CrossBlock) -> None:
    _attention(theirs, ours.cross_attention, ours.cross_residual.norm)
    _linear(theirs.linear[0], ours.cross_attention.query_projection)
    _linear(theirs.linear[1], ours.cross_attention.key_value_projection)


def _attention(theirs: Any, ours: AttentionHeads, norm: nn.Module) -> None:
    theirs.queries_scale = np.float32(ours.scale)
    _norm(theirs.layer_norm, norm)
    _linear(theirs.linear[-1], ours.output_projection)


def _feed_forward(theirs: Any, ours: FeedForward) -> None:
    _linear(theirs.linear_1, ours.output_projection)
    inner = ours.inner_projection
    if not hasattr(theirs, "linear_0_noact"):
        _linear(theirs.linear_0, inner)
        return
    halves = (theirs.linear_0, theirs.linear_0_noact)
    for number, half in enumerate(halves):
        half.weight = _array(inner.weight.chunk(2)[number])
        if inner.bias is not None:
            half.bias = _array(inner.bias.chunk(2)[number])


def _linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight = _array(ours.weight)
    if ours.bias is not None:
        theirs.bias = _array(ours.bias)


def _norm(theirs: Any, ours: nn.Module) -> None:
    theirs.gamma = _array(ours.weight)
    if hasattr(theirs, "beta"):
        theirs.beta = _array(ours.bias)


def _array(tensor: Tensor | nn.Module) -> Any:
    assert isinstance(tensor, Tensor)
    # A copy, because quantizing works in place.
    return tensor.detach().float().cpu().numpy().copy()


def _vocabulary(loaded: LoadedModel, spec: Any) -> None:
    names = token_names(loaded)
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    special = loaded.config.model.special_tokens
    # No text holds the padding token, so it can stand for what CTranslate2 does not know.
    spec.config.unk_token = names[special.pad]
    spec.config.bos_token = spec.config.decoder_start_token = names[special.start]
    spec.config.eos_token = names[special.end]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = loaded.config.model.encoder.norm_epsilon


def token_names(loaded: LoadedModel) -> list[str]:
    """The names of all ids, including ids of the model that the tokenizer does not have."""
    tokenizer = loaded.text_tokenizer
    named = range(tokenizer.vocabulary_size)
    unused = range(tokenizer.vocabulary_size, loaded.config.model.vocabulary_size)
    return [tokenizer.token_name(number) for number in named] + [f"⟨unused {number}⟩" for number in unused]
