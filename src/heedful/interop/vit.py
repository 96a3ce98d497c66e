"""Vision Transformers in Hugging Face's layout."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from heedful.errors import UserError
from heedful.interop.mapping import Imported, Tensors, activation, label_names
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.models.vision import PixelConfig, VisionConfig


def convert(config: dict[str, Any], tensors: Tensors) -> Imported:
    """ViTForImageClassification."""
    if "classifier.weight" not in tensors:
        raise UserError("it has no classifier: only ViTForImageClassification is supported")
    tensors.drop(lambda name: name.startswith("vit.pooler."))  # which the classifier does not look at
    labels = label_names(config)
    settings = _settings(config, len(labels))
    positions_XD = tensors.take("vit.embeddings.position_embeddings")[0]
    patches = tensors.take_layer("vit.embeddings.patch_embeddings.projection", "patches.projection")
    patches["patches.projection.weight"] = patches["patches.projection.weight"].flatten(1)
    found = {
        "class_token.vector": tensors.take("vit.embeddings.cls_token")[0, 0],
        "class_token.position": positions_XD[0],
        "positions.table": positions_XD[1:].unflatten(0, settings.grid),
        **patches,
        **tensors.take_layer("vit.layernorm", "norm"),
        **tensors.take_layer("classifier", "output"),
    }
    for layer in range(settings.stack.num_layers):
        found |= _block(tensors, f"vit.encoder.layer.{layer}", f"blocks.{layer}")
    return Imported("vision", "image_classifier", settings, found, labels)


def _block(tensors: Tensors, theirs: str, ours: str) -> dict[str, Tensor]:
    projections = [f"{theirs}.attention.attention.{name}" for name in ("query", "key", "value")]
    return {
        **tensors.take_packed(projections, f"{ours}.attention.query_key_value_projection"),
        **tensors.take_layer(f"{theirs}.attention.output.dense", f"{ours}.attention.output_projection"),
        **tensors.take_layer(f"{theirs}.layernorm_before", f"{ours}.attention_residual.norm"),
        **tensors.take_layer(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.inner_projection"),
        **tensors.take_layer(f"{theirs}.output.dense", f"{ours}.feed_forward.output_projection"),
        **tensors.take_layer(f"{theirs}.layernorm_after", f"{ours}.feed_forward_residual.norm"),
    }


def _settings(config: dict[str, Any], num_classes: int) -> VisionConfig:
    if not config.get("qkv_bias", True):
        raise UserError("config.json has qkv_bias = False, and only True is supported")
    return VisionConfig(
        image_size=_pair(config["image_size"]),
        patch_size=_pair(config["patch_size"]),
        channels=config.get("num_channels", 3),
        num_classes=num_classes,
        width=config["hidden_size"],
        pixels=PixelConfig(tuple(config.get("image_mean", [0.5])), tuple(config.get("image_std", [0.5]))),
        stack=StackConfig(
            num_layers=config["num_hidden_layers"],
            norm="pre",
            dropout=config.get("hidden_dropout_prob", 0.0),
            attention=AttentionConfig(
                num_heads=config["num_attention_heads"], dropout=config.get("attention_probs_dropout_prob", 0.0)
            ),
            feed_forward=FeedForwardConfig(config["intermediate_size"], activation(config.get("hidden_act", "gelu"))),
            norm_epsilon=config.get("layer_norm_eps", 1e-12),
        ),
    )


def _pair(size: int | list[int]) -> tuple[int, ...]:
    return (size, size) if isinstance(size, int) else tuple(size)
