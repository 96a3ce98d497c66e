"""Another way to the result: models whose attention takes weights that were recorded before."""

from collections.abc import Callable
from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from heedful.inspection.attention_maps import AttentionMaps
from heedful.inspection.recorder import recording_view

# Where a map of each kind comes from; the last is that of a recurrent model.
LAYERS = {
    "encoder": ["encoder.{}.attention", "blocks.{}.attention"],
    "decoder": ["decoder.{}.attention", "blocks.{}.attention"],
    "cross": ["decoder.{}.cross_attention", "decoder.cross_attention"],
    "image": ["blocks.{}.attention"],
    "content": ["blocks.{}.attention"],
    "query": ["blocks.{}.attention"],
}


class Replay:
    """Attention by given weights, whatever queries and keys say."""

    def __init__(self, weights_HQK: Tensor) -> None:
        self.weights_HQK = weights_HQK

    def __call__(self, query: Tensor, key: Tensor, value_BHSV: Tensor, *rest: object) -> Tensor:
        assert len(value_BHSV) == 1
        return self.weights_HQK @ value_BHSV


def replaying(model: nn.Module, found: AttentionMaps) -> nn.Module:
    """The model on the same parameters, with the weights of `found` in place of its attention."""
    view, _ = recording_view(model)
    modules = dict(view.named_modules())
    for each in found.maps:
        names = chain.from_iterable([pattern.format(each.layer)] for pattern in LAYERS[each.kind])
        module = next(modules[name] for name in names if name in modules)
        replay = Replay(torch.from_numpy(each.weights))
        if each.kind in ("content", "query"):
            module.attend[each.kind] = replay
        else:
            module.attend = replay
    return view


@pytest.fixture(scope="session")
def replay() -> Callable[[nn.Module, AttentionMaps], nn.Module]:
    return replaying
