"""Who hangs is told from what processes report, not from who gives up waiting first."""

import time
from collections.abc import Callable, Iterator

import pytest

from heedful.training.parallel.reports import FOLLOWS, IN_VAIN, WORKS, Heard, Reports, hung_among
from process_group import new_store

Join = Callable[[int], Reports]
SILENT = 1.0


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Iterator[Join]:
    """Processes of a run of three, which report ten times a second."""
    monkeypatch.setattr("heedful.training.parallel.reports.SILENT_SECONDS", SILENT)
    store, made = new_store(), []

    def one(rank: int) -> Reports:
        made.append(Reports(store, rank, 3, timeout=0.5))
        return made[-1]

    yield one
    for each in made:
        each.end()


def test_one_that_reports_no_more_hangs_and_one_that_still_computes_does_not(join: Join) -> None:
    first, second, _ = (join(rank) for rank in range(3))
    second.end()
    assert first.hung() == [1]


def test_one_that_is_stuck_but_alive_is_told_from_those_that_wait(join: Join) -> None:
    first, _, third = (join(rank) for rank in range(3))
    with third.following():
        assert first.hung() == [1]
    third.give_up()
    third.end()
    time.sleep(SILENT)
    assert first.hung() == [1]


def test_one_is_the_first_to_tell(join: Join) -> None:
    assert [join(rank).first_to_tell() for rank in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("heard", "listened", "found"),
    [
        ({1: Heard(WORKS, 2.9), 2: Heard(WORKS, 0.5)}, 2.9, None),
        ({1: Heard(WORKS, 3.1), 2: Heard(WORKS, 0.5)}, 3.1, [1]),
        ({1: Heard(FOLLOWS, 3.1), 2: Heard(WORKS, 0.5)}, 3.1, [1]),
        ({1: Heard(WORKS, 3.1), 2: Heard(WORKS, 3.1)}, 3.1, None),  # one of them may only be late
        ({1: Heard(WORKS, 10.1), 2: Heard(WORKS, 4.0)}, 10.1, [1]),
        ({1: Heard(WORKS, 10.1), 2: Heard(WORKS, 10.1)}, 10.1, [1, 2]),
        ({1: Heard(WORKS, 0.5), 2: Heard(IN_VAIN, 40.0)}, 40.0, [1]),
        ({1: Heard(WORKS, 0.5), 2: Heard(WORKS, 0.5)}, 40.0, None),
        ({1: Heard(WORKS, 0.5), 2: Heard(WORKS, 0.5)}, 60.0, [1, 2]),
        ({1: Heard(IN_VAIN, 0.5), 2: Heard(FOLLOWS, 0.5)}, 3.1, []),
    ],
)
def test_what_is_heard_decides(heard: dict[int, Heard], listened: float, found: list[int] | None) -> None:
    assert hung_among(heard, listened, 60.0) == found
