import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.layers.patches import PatchEmbedding, cut_patches, resize_windows
from heedful.settings.patch_grid import patch_grid

CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


def by_convolution(embedding: PatchEmbedding, pixels: Tensor) -> Tensor:
    weight = embedding.projection.weight.view(-1, pixels.shape[1], *embedding.patch_size)
    convolve = CONVOLUTIONS[len(embedding.patch_size)]
    return convolve(pixels, weight, embedding.projection.bias, embedding.patch_size).flatten(2).transpose(1, 2)


@pytest.mark.parametrize(
    ("size", "patch"),
    [
        ((10, 21), (5, 7)),
        ((3, 7), (1, 1)),  # every pixel is a token
        ((11, 13), (11, 13)),
        ((6, 10, 21), (2, 5, 7)),  # tubelets of two frames
        ((5, 3, 14), (1, 3, 7)),
        ((33,), (11,)),
    ],
)
def test_it_is_a_convolution_with_the_stride_of_its_size(size: tuple[int, ...], patch: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    embedding = PatchEmbedding(patch, channels=3, width=17)
    pixels = torch.randn(2, 3, *size)
    torch.testing.assert_close(embedding(pixels), by_convolution(embedding, pixels), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "patch", "padded"),
    [((11, 13), (5, 7), (15, 14)), ((1, 1), (4, 4), (4, 4)), ((5, 8, 9), (2, 4, 4), (6, 8, 12))],
)
def test_what_lacks_to_whole_patches_is_padded_with_zeros(size, patch, padded) -> None:
    torch.manual_seed(2)
    pixels = torch.randn(3, 2, *size)
    whole = torch.zeros(3, 2, *padded)
    whole[(..., *(slice(length) for length in size))] = pixels
    assert torch.equal(cut_patches(pixels, patch), cut_patches(whole, patch))
    assert patch_grid(size, patch) == patch_grid(padded, patch)


def test_a_patch_holds_its_own_pixels_row_by_row() -> None:
    pixels = torch.arange(2 * 6 * 9).view(1, 2, 6, 9)
    patches = cut_patches(pixels, (2, 3))
    assert patches.shape == (1, 9, 12)
    assert torch.equal(patches[0, 5], pixels[0, :, 2:4, 6:9].flatten())


def test_windows_overlap_and_have_the_patches_in_their_middle() -> None:
    torch.manual_seed(3)
    embedding = PatchEmbedding((4, 3), channels=2, width=5, window=(6, 7))
    pixels = torch.randn(2, 2, 12, 9)
    weight = embedding.projection.weight.view(5, 2, 6, 7)
    around = functional.pad(pixels, (2, 2, 1, 1), mode="replicate")
    expected = functional.conv2d(around, weight, embedding.projection.bias, (4, 3)).flatten(2).transpose(1, 2)
    torch.testing.assert_close(embedding(pixels), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"), [((3, 5), (3, 5)), ((4, 4), (8, 12)), ((4, 3), (6, 5)), ((2, 3, 1), (3, 7, 1))]
)
def test_resized_windows_see_what_the_old_ones_do(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    torch.manual_seed(4)
    weights, pixels = torch.randn(5, 2 * math.prod(old)), torch.randn(1, 2, *new)
    averaged = pixels
    for axis, (to, length) in enumerate(zip(old, new, strict=True), 2):
        # Every pixel repeated so often that each of the new ones is made of whole ones.
        averaged = averaged.repeat_interleave(to, axis).unflatten(axis, (to, length)).mean(axis + 1)
    expected = weights @ averaged.flatten()
    torch.testing.assert_close(resize_windows(weights, old, new) @ pixels.flatten(), expected, rtol=1e-5, atol=1e-5)
