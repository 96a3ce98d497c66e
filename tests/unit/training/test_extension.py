"""When a finished run may go on: only to a later end of the same kind, and only if that was asked for."""

import json
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.training.config import LimitConfig
from heedful.training.extension import check_extension, same_end


def limit(**given: object) -> LimitConfig:
    return LimitConfig(**given)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "checkpoints" / "step-000000008"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"finished": True, "position": {"step": 8}}))
    return tmp_path


# As texts, "10m" comes before "2m".
@pytest.mark.parametrize(("before", "now"), [("2m", "10m"), ("1m", "90s"), ("59m", "1h"), ("90s", "1m31s")])
def test_a_budget_is_extended_by_a_longer_time(out: Path, before: str, now: str) -> None:
    assert check_extension(limit(budget=before), limit(budget=now), True, out).step == 8
    with pytest.raises(
        UserError, match=f"ended after {before}: training.limit.budget was '{before}' and is now .*Add --extend"
    ):
        check_extension(limit(budget=before), limit(budget=now), False, out)
    with pytest.raises(UserError, match=r"which is less\. Give a larger budget"):
        check_extension(limit(budget=now), limit(budget=before), True, out)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_budget_that_leaves_no_time_to_train_is_refused_with_what_is_needed(out: Path, wanted: bool) -> None:
    state = {"finished": True, "position": {"step": 8}, "elapsed": 59.5, "reserve": 4.25}
    (out / "run" / "checkpoints" / "step-000000008" / "state.json").write_text(json.dumps(state))
    with pytest.raises(
        UserError, match=r"taken 0:59, and another validation needs 4.2 s\. .*of well over 64s to extend"
    ):
        check_extension(limit(budget="1m"), limit(budget="63s"), wanted, out)
    assert check_extension(limit(budget="1m"), limit(budget="64s"), True, out).step == 8
    assert check_extension(limit(steps=8), limit(steps=9), True, out).step == 8


@pytest.mark.parametrize("kind", ["steps", "epochs", "patience"])
def test_a_number_is_extended_by_a_larger_one(out: Path, kind: str) -> None:
    assert check_extension(limit(**{kind: 7}), limit(**{kind: 11}), True, out).step == 8
    with pytest.raises(UserError, match=rf"which is less\. Give a larger {kind}"):
        check_extension(limit(**{kind: 11}), limit(**{kind: 7}), True, out)


def test_another_kind_of_limit_is_refused(out: Path) -> None:
    with pytest.raises(UserError, match=r"ended after 2m: .*extended by a larger budget only"):
        check_extension(limit(budget="2m"), limit(epochs=3), True, out)


@pytest.mark.parametrize(("before", "now"), [({"steps": 7}, {}), ({}, {"steps": 7})])
def test_a_refusal_names_a_setting_that_has_changed(out: Path, before: dict[str, int], now: dict[str, int]) -> None:
    changed = f"limit.steps was {before.get('steps')} and is now {now.get('steps')}"
    with pytest.raises(UserError, match=changed):
        check_extension(limit(**before), limit(**now), True, out)


@pytest.mark.parametrize(
    ("before", "now", "alike"),
    [
        ({"steps": 7}, {"steps": 7, "patience": 3}, True),
        ({"budget": "1m"}, {"budget": "60s"}, True),
        ({"patience": 7}, {"patience": 3}, False),
        ({"steps": 7}, {"epochs": 7}, False),
        ({"steps": 5}, {}, False),
    ],
)
def test_limits_are_alike_if_they_end_a_run_at_the_same_point(
    before: dict[str, object], now: dict[str, object], alike: bool
) -> None:
    assert same_end(limit(**before), limit(**now)) == alike


def test_a_run_that_has_not_finished_is_refused(out: Path) -> None:
    (out / "run" / "checkpoints" / "step-000000008" / "state.json").write_text('{"position": {"step": 8}}')
    with pytest.raises(UserError, match="has not got there yet"):
        check_extension(limit(steps=8), limit(steps=9), True, out)
