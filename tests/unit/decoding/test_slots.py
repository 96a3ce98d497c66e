import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding import DecodingOptions, Request, decode
from heedful.decoding.slots import _arrange
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


def test_scores_that_are_not_numbers_are_an_error(table_model):
    model = table_model(11)
    model.step = lambda *arguments: table_model.step(model, *arguments) * float("nan")
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        list(decode(model, [Request(0, (3,))], DecodingOptions(beam=1), 1))
