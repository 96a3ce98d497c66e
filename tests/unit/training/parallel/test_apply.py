"""A model that is spread over processes computes what it computes in one, dropout included."""

from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.models.families import FAMILIES
from heedful.settings.xlnet import XLNetConfig
from heedful.training.parallel.placements import Placement, check_divisible, placements
from parallel_models import CASES, build, compare
from process_group import run_in_processes

LOSS = {"float64": 1e-9, "float32": 1e-4}
ON_TWO = [{"shard": 2}, {"tensor": 2}, {"replicate": 2}]
ON_FOUR = [
    {"shard": 2, "tensor": 2},
    {"replicate": 2, "tensor": 2},
    {"replicate": 2, "shard": 2, "activation_checkpointing": True},
    {"tensor": 4, "activation_checkpointing": True},
]


@pytest.mark.parametrize("kind", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_two_processes_give_the_losses_of_one(kind: str, tmp_path: Path) -> None:
    _check(run_in_processes(2, tmp_path, compare, ON_TWO, list(CASES), kind)[0], kind, len(ON_TWO) * len(CASES))


@pytest.mark.slow
def test_four_processes_give_the_losses_of_one(tmp_path: Path) -> None:
    cases = ["translation", "gpt", "vision"]
    _check(run_in_processes(4, tmp_path, compare, ON_FOUR, cases, "float64")[0], "float64", 12)


def _check(found: list[list[float]], kind: str, count: int) -> None:
    assert len(found) == count
    for name, layout, by_loss, by_weight in found:
        assert by_loss <= LOSS[kind], (name, layout, by_loss)
        # In fp32 Adam makes steps of the rounding errors of gradients that are 0, such as those of a key's bias.
        assert kind == "float32" or by_weight <= 1e-9, (name, layout, by_weight)


def test_every_process_has_whole_heads_and_together_they_have_everything() -> None:
    whole = torch.arange(2 * 42.0).view(42, 2)  # queries of 6 heads, keys and values of 2 and 6, each of width 3
    placement = Placement(0, (18, 6, 18))
    shares = [placement.share(whole, rank, 2) for rank in range(2)]
    assert torch.equal(shares[1][:, 0], whole[[*range(9, 18), *range(21, 24), *range(33, 42)], 0])
    assert torch.equal(placement.joined(shares), whole)
    uneven = Placement(0)  # a vocabulary of 53 over 4 processes
    tokens = torch.arange(53.0)
    assert [len(uneven.share(tokens, rank, 4)) for rank in range(4)] == [14, 14, 14, 11]
    assert torch.equal(uneven.joined([uneven.share(tokens, rank, 4) for rank in range(4)]), tokens)


def test_the_placements_of_every_family_are_by_name() -> None:
    axes = {name: each.axis for name, each in placements(build(CASES["translation"], torch.float32)).items()}
    assert axes["source_embedding.table.weight"] == 0 == axes["output.bias"]
    assert axes["decoder.1.attention.query_key_value_projection.bias"] == 0
    assert axes["decoder.1.cross_attention.key_value_projection.weight"] == 0
    assert axes["encoder.0.feed_forward.inner_projection.weight"] == 0
    assert axes["encoder.0.feed_forward.output_projection.weight"] == 1
    assert axes["decoder.0.cross_attention.output_projection.weight"] == 1
    assert {axis for name, axis in axes.items() if "norm" in name or "output_projection.bias" in name} == {None}
    vision = placements(build(CASES["vision"], torch.float32))
    assert vision["output.weight"].axis is None and vision["patches.projection.weight"].axis is None
    xlnet = placements(FAMILIES["xlnet"].build_without_memory(XLNetConfig(vocabulary_size=53, width=24, segments=True)))
    assert xlnet["embedding.weight"].axis == 0 and xlnet["blocks.0.attention.segment_embedding"].axis == 1
    assert (
        xlnet["blocks.0.attention.distance_projection.weight"].axis
        == 0
        == xlnet["blocks.3.attention.content_bias"].axis
    )
    assert xlnet["query_embedding"].axis is None


def test_a_number_of_heads_that_cannot_be_split_is_told() -> None:
    with pytest.raises(UserError, match=r"training.parallel.tensor is 3, but encoder.0.attention has 4 heads"):
        check_divisible(build(CASES["translation"], torch.float32), 3)
