import torch

from benchmarks.cropped_positions import crop_or_tile


def test_crop_or_tile() -> None:
    given = torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(crop_or_tile(given, (3, 2)), given[:3, :2])
    assert torch.equal(crop_or_tile(given, (5, 7)), given)
    tiled = crop_or_tile(given, (11, 9))
    assert torch.equal(tiled[5:10, :7], given)
    assert torch.equal(tiled[10, 7:], given[0, :2])
