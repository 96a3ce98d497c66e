"""ViTForImageClassification of transformers, imported, gives the same logits, at the trained size and at others."""

import tempfile
from pathlib import Path

import pytest
import torch

from heedful.interop.huggingface import read_folder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()


def pair(image_size, patch_size):
    """A model of the other implementation with random weights, and ours, imported from its folder."""
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
    with tempfile.TemporaryDirectory() as folder:
        other.save_pretrained(folder)
        model = read_folder(Path(folder)).loaded.network
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
