import pytest

from heedful.errors import UserError
from heedful.training.run_state import Position, RunState


def test_plain_data_and_back() -> None:
    state = RunState(Position(7, 1, 3), best_rank=[0.25, 1.5], elapsed=2.5)
    assert RunState.from_dict(state.to_dict()) == state


def test_the_state_of_another_version_is_named_as_such() -> None:
    with pytest.raises(UserError, match="another version of heedful"):
        RunState.from_dict({**RunState().to_dict(), "of_old": 1})
