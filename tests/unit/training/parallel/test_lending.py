"""A model that is spread over processes is measured, averaged and written as in one, and is whole in none of them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.inspection.trace.views import view_of
from heedful.training.parallel.lending import Lender
from heedful.training.parallel.world import ALONE
from parallel_models import CASES, build
from process_group import run_in_processes
from spread_measuring import MEASURED, measure, measure_and_wait

ON_TWO = [{"shard": 2}, {"tensor": 2}, {"pipeline": 2}]
ON_FOUR = [{"shard": 2, "tensor": 2}, {"replicate": 2, "shard": 2}, {"replicate": 2, "pipeline": 2}]
FEW = ["translation", "gpt_deep"]


@pytest.mark.parametrize("cases", [FEW, pytest.param(sorted({*MEASURED} - {*FEW}), marks=pytest.mark.slow)], ids=len)
def test_two_processes_measure_average_and_write_what_one_does(cases: list[str], tmp_path: Path) -> None:
    assert run_in_processes(2, tmp_path / "results", measure, str(tmp_path), ON_TWO, cases) == [[], []]


@pytest.mark.slow
def test_four_processes_do_too_and_their_groups_wait_no_longer_than_they_are_told(tmp_path: Path) -> None:
    found = run_in_processes(4, tmp_path / "results", measure_and_wait, str(tmp_path), ON_FOUR, FEW, 2.0)
    assert [each["wrong"] for each in found] == [[], [], [], []]
    waited = found[0]["waited"]
    assert waited.keys() == {"shard", "tensor"} and all(1.0 < each < 20.0 for each in waited.values()), waited


def test_a_view_borrows_for_itself_and_gives_back() -> None:
    model = build(CASES["translation"], torch.float32).eval()
    kept = {name: each.detach().clone() for name, each in model.named_parameters()}
    random = torch.Generator().manual_seed(3)
    ids = torch.randint(5, 53, (2, 7), generator=random)
    expected = model(ids, ids)
    lender = Lender(model, ALONE)
    assert not any(each.numel() for each in model.parameters())
    view, asked = view_of(model), []

    def gather(names: Any) -> Any:
        asked.append(len(names))
        return iter([(name, kept[name]) for name in names])

    with lender.lending(gather), torch.inference_mode():
        assert torch.equal(view(ids, ids), expected) and torch.equal(model(ids, ids), expected)
        assert len(asked) == 1 + 2 * 4  # what is outside of the blocks stays
    assert not any(each.numel() for each in model.parameters())
