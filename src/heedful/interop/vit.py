"""Vision Transformers in Hugging Face's layout."""

from __future__ import annotations

from torch import Tensor

from heedful.config import shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.image_processor import read_pixels, read_scaling
from heedful.interop.mapping import Imported, Tensors, activation, label_names
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig


def convert(config: ForeignConfig, tensors: Tensors) -> Imported:
    """ViTForImageClassification."""
    if "classifier.weight" not in tensors:
        raise UserError("it has no classifier: only ViTForImageClassification is supported")
    tensors.drop(lambda name: name.startswith("vit.pooler."))  # the classifier does not use it
    labels = label_names(config)
    settings = _settings(config, len(labels))
    positions_XD = tensors.take("vit.embeddings.position_embeddings", 3)[0]
    if len(positions_XD) != settings.length:
        raise UserError(f"there are {len(positions_XD)} position_embeddings, but image_size asks for {settings.length}")
    patches = tensors.take_layer("vit.embeddings.patch_embeddings.projection", "patches.projection", 4)
    patches["patches.projection.weight"] = patches["patches.projection.weight"].flatten(1)
    found = {
        "class_token.vector": tensors.take("vit.embeddings.cls_token", 3)[0, 0],
        "class_token.position": positions_XD[0],
        "positions.table": positions_XD[1:].unflatten(0, settings.grid),
        **patches,
        **tensors.take_layer("vit.layernorm", "norm"),
        **tensors.take_layer("classifier", "output"),
    }
    for layer in range(settings.stack.num_layers):
        found |= _block(tensors, f"vit.encoder.layer.{layer}", f"blocks.{layer}")
    missing = "there is no preprocessor_config.json: images are scaled to the model's size, and pixels to -1 to 1"
    remarks = () if config.images else (missing,)
    return Imported("vision", "image_classifier", settings, found, labels, remarks)


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


def _settings(config: ForeignConfig, num_classes: int) -> VisionConfig:
    config.require("qkv_bias", True, True)
    image_size, patch_size = _pair(config, "image_size"), _pair(config, "patch_size")
    if any(length % patch for length, patch in zip(image_size, patch_size, strict=True)):
        raise config.error(
            f"image_size is {list(image_size)}, which patch_size, {list(patch_size)}, does not divide: not supported"
        )
    images, channels = config.images or ForeignConfig(config.file, {}), config.integer("num_channels", 3)
    return VisionConfig(
        image_size=image_size,
        patch_size=patch_size,
        channels=channels,
        num_classes=num_classes,
        width=config.integer("hidden_size"),
        pixels=read_pixels(images, channels),
        scaling=read_scaling(images, image_size),
        stack=StackConfig(
            num_layers=config.integer("num_hidden_layers"),
            norm="pre",
            dropout=config.share("hidden_dropout_prob", 0.0),
            attention=AttentionConfig(
                num_heads=config.integer("num_attention_heads"),
                dropout=config.share("attention_probs_dropout_prob", 0.0),
            ),
            feed_forward=FeedForwardConfig(
                config.integer("intermediate_size"), activation(config, "hidden_act", "gelu")
            ),
            norm_epsilon=config.number("layer_norm_eps", 1e-12),
        ),
    )


def _pair(config: ForeignConfig, name: str) -> tuple[int, int]:
    """A height and a width, or one number for both."""
    given = config.value(name)
    sizes = given if isinstance(given, list) else [given, given]
    if len(sizes) != 2 or not all(type(each) is int and each > 0 for each in sizes):
        raise config.error(f"{name} is {shown(given)}, expected a whole number from 1 up, or two")
    return sizes[0], sizes[1]
