import random

import pytest

from heedful.inspection.diagnosis import checks, diagnose, judgeable, verdict
from heedful.inspection.run_record import read_run

SAME = {"count": 20, "commonest": "the same", "share": 1.0, "expected_share": 0.1}


def test_a_young_run_is_not_judged(write_run, step_row, validation_row) -> None:
    rows = [step_row(1), validation_row(1, answers=SAME, input_gain=0.0)]
    record = read_run(write_run(rows))
    assert not judgeable(record)
    assert (verdict(record), diagnose(record)) == ("too short to judge", [])


@pytest.mark.parametrize(
    ("finished", "validations", "expected"), [(True, 1, True), (False, 2, False), (False, 3, True)]
)
def test_a_run_is_judged_at_its_end_or_from_its_third_validation_on(
    write_run, step_row, validation_row, finished: bool, validations: int, expected: bool
) -> None:
    rows = [step_row(number) for number in range(1, 51)] + [validation_row(50)] * validations
    assert judgeable(read_run(write_run(rows, finished=finished))) == expected


def test_few_answers_may_be_alike_by_chance(write_run, step_row, validation_row) -> None:
    rows = [step_row(number, loss=5 - number / 20) for number in range(1, 51)]
    record = read_run(write_run([*rows, validation_row(50, answers={**SAME, "count": 9})]))
    assert verdict(record) == "healthy"


@pytest.mark.parametrize(("spread", "expected"), [(0.01, "divergence"), (0.2, "healthy")])
def test_a_noisy_loss_that_rises_a_little_has_not_diverged(
    write_run, step_row, validation_row, spread: float, expected: str
) -> None:
    # A fine-tune: from 0.37 to 0.30, and 0.41 at the end, by steps that are spread around it.
    draw = random.Random(1)
    means = [0.37] * 10 + [0.3] * 70 + [0.41] * 20
    rows = [step_row(number, loss=mean + draw.gauss(0, spread)) for number, mean in enumerate(means, 1)]
    assert verdict(read_run(write_run([*rows, validation_row(100)]))) == expected


def test_a_run_is_said_to_be_examined_for_what_it_has_recorded(write_run, step_row, validation_row) -> None:
    names = checks(read_run(write_run([step_row(1), validation_row(1, answers=None, input_gain=2.0)])))
    assert "constant output" not in names
    assert "an ignored source" in names
