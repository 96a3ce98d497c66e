import random
from dataclasses import replace

import pytest

from heedful.inspection.run.diagnosis import checks, diagnose, judgeable, verdict
from heedful.inspection.run.run_record import read_run

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


@pytest.mark.parametrize(
    ("gain", "last_loss", "steps", "epochs", "expected"),
    [
        (0.30, 4.7, 300, 5, "too short to judge"),  # one minute of pairs that belong together: 4.74 against 5.04
        (0.30, 4.7, 1500, 5, "too short to judge"),  # chance does not give so much
        (0.02, 4.7, 300, 5, "too short to judge"),  # the training loss still falls
        (0.02, 5.05, 300, 1, "too short to judge"),  # it rests with the learning rate, before the data was seen twice
        (0.02, 5.05, 300, 5, "source ignored"),  # it has come to rest, and the source was of no use
        (0.02, 4.7, 1500, 1, "source ignored"),  # it has had the time
        (0.60, 4.7, 300, 5, "healthy"),
    ],
)
def test_an_ignored_source_needs_evidence(
    write_run, step_row, validation_row, gain: float, last_loss: float, steps: int, epochs: int, expected: str
) -> None:
    third = 2 * steps // 3
    losses = [7 - 1.9 * number / third for number in range(third)]
    losses += [5.1 - (5.1 - last_loss) * number / (steps - third) for number in range(steps - third)]
    rows = [step_row(number, loss=loss, epoch=(number - 1) * epochs // steps) for number, loss in enumerate(losses, 1)]
    record = read_run(write_run([*rows, validation_row(steps, loss=4.74, input_gain=gain)]))
    assert verdict(record) == expected
    said = [str(finding) for finding in diagnose(record)]
    assert any("misaligned" in text for text in said) == (expected == "source ignored")
    if expected.startswith("too short"):
        assert "too short to tell" in said[0] and "4.74 with the right sources" in said[0]
        assert not diagnose(record)[0].fault


def test_overfitting_is_told_from_the_loss_and_the_folder_from_what_the_weights_were_chosen_by(
    write_run, step_row, validation_row
) -> None:
    rows = [step_row(number, loss=5 - number / 50) for number in range(1, 201)]
    measured = [(100, 1.0, 0.4), (150, 1.3, 0.2), (200, 1.5, 0.3)]
    rows += [
        validation_row(step, loss=loss, accuracy=1 - wrong, wrong=wrong, **{"macro F1": 0.5})
        for step, loss, wrong in measured
    ]
    (finding,) = diagnose(read_run(write_run(rows)))
    assert "lowest (1.000) at step 100 and is 1.500" in finding.evidence
    assert "holds the weights of step 150. For better" in finding.advice  # how they were chosen is said before it


def test_a_small_loss_that_rises_a_little_is_not_overfitting(write_run, step_row, validation_row) -> None:
    rows = [step_row(number, loss=5 - number / 50) for number in range(1, 201)]
    rows += [validation_row(step, loss=loss, wrong=0.0) for step, loss in ((100, 0.0137), (200, 0.0279))]
    assert verdict(read_run(write_run(rows))) == "healthy"


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


@pytest.mark.parametrize(
    ("family", "commonest", "told"),
    [
        ("decoder_only", " ", "Of 20 held-out next tokens, 100% are a space; of the right next tokens, the commonest"),
        ("xlnet", "\n", "Of 20 held-out next tokens, 100% are a line break; of"),
        ("decoder_only", "", "Of 20 held-out next tokens, 100% are the end of a document; of"),
        ("decoder_only", "e", "Of 20 held-out next tokens, 100% are “e”; of"),
        (
            "encoder_decoder",
            "",
            "Of 20 held-out answers, 100% are empty; of the right answers, the commonest makes up 10%",
        ),
    ],
)
def test_an_answer_that_cannot_be_seen_is_named(
    write_run, step_row, validation_row, family: str, commonest: str, told: str
) -> None:
    rows = [step_row(number, loss=5 - number / 20) for number in range(1, 51)]
    record = read_run(write_run([*rows, validation_row(50, answers={**SAME, "commonest": commonest})], finished=True))
    (found,) = diagnose(replace(record, family=family))
    assert found.evidence.startswith(told)
    what = "answer" if family == "encoder_decoder" else "next token"
    assert found.title == f"The model always gives the same {what}"
