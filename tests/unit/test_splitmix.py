import numpy as np

from heedful.splitmix import GOLDEN_GAMMA, mix


def test_the_first_numbers_are_those_of_the_published_generator() -> None:
    states = np.arange(1, 4, dtype=np.uint64) * GOLDEN_GAMMA  # of a generator that is seeded with 0
    assert [f"{number:016x}" for number in mix(states).tolist()] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "06c45d188009454f",
    ]
