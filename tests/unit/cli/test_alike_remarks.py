"""Remarks on many lines are told of in a few."""

from heedful.cli.alike_remarks import MOST_ALIKE, alike_remarks


def test_remarks_that_are_alike_but_for_their_numbers_are_counted() -> None:
    told: list[str] = []
    with alike_remarks(told.append) as remark:
        for number in range(1, 2001):
            remark(f"line {number:,} has {number % 7} subwords")
        remark("line 3 has a blank source")
    first = [f"line {number} has {number} subwords" for number in range(1, MOST_ALIKE + 1)]
    assert told == [*first, "line 3 has a blank source", "... and 1,995 more like this: line … has … subwords"]


def test_few_remarks_are_all_told() -> None:
    told: list[str] = []
    with alike_remarks(told.append) as remark:
        for number in range(MOST_ALIKE):
            remark(f"line {number}")
    assert len(told) == MOST_ALIKE


def test_remarks_of_a_single_kind_are_not_repeated_in_their_number() -> None:
    told: list[str] = []
    with alike_remarks(told.append) as remark:
        for number in range(MOST_ALIKE + 69):
            remark(f"line {number + 4} is longer than the 29 tokens that the model takes")
    assert told[MOST_ALIKE:] == ["... and 69 more like this"]
