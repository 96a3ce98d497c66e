"""The model represents ViTForImageClassification of transformers exactly, at the trained size and at others."""

import pytest
import torch

from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.models.vision import Vision, VisionConfig
from heedful.models.weights_file import load_parameters

transformers = pytest.importorskip("transformers")


def own_weights(other: dict[str, torch.Tensor], config: VisionConfig) -> dict[str, torch.Tensor]:
    """The weights of the other implementation under our names."""
    positions = other["vit.embeddings.position_embeddings"][0]
    weights = {
        "class_token.vector": other["vit.embeddings.cls_token"][0, 0],
        "class_token.position": positions[0],
        "positions.table": positions[1:].view(*config.grid, -1),
        "patches.projection.weight": other["vit.embeddings.patch_embeddings.projection.weight"].flatten(1),
        "patches.projection.bias": other["vit.embeddings.patch_embeddings.projection.bias"],
    }
    for kind in ("weight", "bias"):
        weights[f"norm.{kind}"] = other[f"vit.layernorm.{kind}"]
        weights[f"output.{kind}"] = other[f"classifier.{kind}"]
        for layer in range(config.stack.num_layers):
            own, theirs = f"blocks.{layer}", f"vit.layers.{layer}"
            names = [f"{theirs}.attention.{each}_proj.{kind}" for each in ("q", "k", "v")]
            weights[f"{own}.attention.query_key_value_projection.{kind}"] = torch.cat([other[name] for name in names])
            for name, its in {
                "attention.output_projection": "attention.o_proj",
                "attention_residual.norm": "layernorm_before",
                "feed_forward_residual.norm": "layernorm_after",
                "feed_forward.inner_projection": "mlp.fc1",
                "feed_forward.output_projection": "mlp.fc2",
            }.items():
                weights[f"{own}.{name}.{kind}"] = other[f"{theirs}.{its}.{kind}"]
    return weights


def pair(image_size, patch_size):
    """A model of the other implementation with random weights, and ours with the same."""
    torch.manual_seed(3)
    settings = transformers.ViTConfig(
        image_size=image_size,
        patch_size=patch_size,
        num_channels=2,
        hidden_size=21,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=37,
        num_labels=11,
    )
    other = transformers.ViTForImageClassification(settings).eval()
    with torch.no_grad():  # biases and norms begin as zeros and ones, which would hide a mistake
        for parameter in other.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    stack = StackConfig(
        3, "pre", 0.0, AttentionConfig(3), FeedForwardConfig(37, "gelu"), norm_epsilon=settings.layer_norm_eps
    )
    sizes = [each if isinstance(each, tuple) else (each, each) for each in (image_size, patch_size)]
    model = Vision(VisionConfig(*sizes, 2, 11, 21, stack=stack)).eval()
    load_parameters(model, own_weights(other.state_dict(), model.config))
    return model, other


@torch.inference_mode()
@pytest.mark.parametrize(("image_size", "patch_size"), [(25, 5), ((15, 28), (5, 7)), (3, 1)])
def test_logits_agree(image_size, patch_size) -> None:
    model, other = pair(image_size, patch_size)
    images = torch.randn(5, 2, *model.config.image_size)
    torch.testing.assert_close(model(images), other(images).logits, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("size", [(50, 50), (15, 40), (35, 20), (5, 5), (10, 55)])
def test_logits_agree_at_another_resolution(size: tuple[int, int]) -> None:
    model, other = pair(25, 5)  # theirs interpolates tables of square grids only
    images = torch.randn(3, 2, *size)
    expected = other(images, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-4)
