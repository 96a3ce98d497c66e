import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding import DecodingOptions, Request, decode
from heedful.decoding.slots import Children, Slots, _arrange
from heedful.errors import UserError


@given(st.integers(1, 5), st.integers(1, 7), st.data())
def test_children_are_placed_once_and_first_children_stay(sentences, places, data):
    parents = data.draw(st.lists(st.integers(0, places - 1), min_size=sentences * places, max_size=sentences * places))
    running = data.draw(st.lists(st.booleans(), min_size=sentences * places, max_size=sentences * places))
    parents = np.array(parents).reshape(sentences, places)
    running = np.array(running).reshape(sentences, places)
    arranged = _arrange(parents, running)
    for n in range(sentences):
        children = [place for place in range(places) if running[n, place]]
        assert sorted(child for child in arranged[n] if child >= 0) == children
        for parent in set(parents[n, children]):
            first = min(child for child in children if parents[n, child] == parent)
            assert arranged[n, parent] == first


def test_the_best_so_far_may_have_ended():
    slots = Slots(1, 11, 1, DecodingOptions(beam=3, nbest=3, length_penalty=0.0), end=2)
    slots.open(0, Request(0, (3,)), first=1, shortest=0, longest=7)

    def advance(*children):
        slots.advance(Children(*(np.array([each]) for each in zip(*children, strict=True))))
        return slots.best_so_far(0)

    assert advance((0, 5, -0.5, -0.5), (0, 7, -0.75, -0.75), (0, 11, -1.0, -1.0)) == [5]
    assert advance((0, 2, -0.25, -0.75), (1, 5, -0.75, -1.5), (2, 5, -1.0, -2.0)) == [5]  # worse ones go on
    assert advance((1, 7, -0.5, -2.0), (2, 7, -0.5, -2.5), (0, 0, 0.0, -np.inf)) == [5]
    assert slots.hypotheses(0)[0].tokens == [5]


def test_one_under_way_may_be_better_than_one_that_has_ended():
    slots = Slots(1, 11, 1, DecodingOptions(beam=2, nbest=2, length_penalty=1.0), end=2)
    slots.open(0, Request(0, (3,)), first=1, shortest=0, longest=7)
    for parents, tokens, scores, totals, best in [
        ([0, 0], [5, 7], [-1.0, -1.5], [-1.0, -1.5], [5]),
        ([1, 0], [2, 11], [-1.5, -0.25], [-3.0, -1.25], [5, 11]),
    ]:
        slots.advance(Children(*map(np.array, ([parents], [tokens], [scores], [totals]))))
        assert slots.best_so_far(0) == best


def test_scores_that_are_not_numbers_are_an_error(table_model):
    model = table_model(11)
    model.step = lambda *arguments: table_model.step(model, *arguments) * float("nan")
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        list(decode(model, [Request(0, (3,))], DecodingOptions(beam=1), 1))
