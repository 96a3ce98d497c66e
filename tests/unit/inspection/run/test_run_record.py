from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.inspection.run.run_record import read_run


def test_half_a_line_at_the_end_is_left_out(write_run, step_row) -> None:
    record = read_run(write_run([step_row(1), step_row(2)], finished=False, end='{"kind": "train", "st'))
    assert [row["step"] for row in record.steps] == [1, 2]
    assert not record.finished


def test_a_run_before_its_first_step_can_be_read(write_run) -> None:
    record = read_run(write_run([]))
    assert (record.steps, record.validations, record.best) == ([], [], None)


def test_times_that_were_not_recorded_are_those_of_the_steps_and_validations(
    write_run, step_row, validation_row
) -> None:
    rows = [step_row(1), step_row(2), validation_row(2, elapsed=70.0), step_row(3)]
    for row in rows:
        if row["kind"] == "train":
            del row["elapsed"]
    assert [row["elapsed"] for row in read_run(write_run(rows)).steps] == [0.5, 1.0, 70.5]


def test_the_rules_of_the_data_report_are_counted(write_run) -> None:
    duplicate, shortened = read_run(write_run([])).data_report
    assert duplicate == {
        "rule": "duplicate",
        "action": "left out",
        "count": 2,
        "first": {"files": ["a", "b"], "line": 3},
    }
    assert (shortened["count"], shortened["first"]) == (1, {"files": ["a"], "line": 1})


def test_a_folder_without_a_run_and_a_broken_line_are_told(tmp_path: Path, write_run, step_row) -> None:
    with pytest.raises(UserError, match="holds no training run"):
        read_run(tmp_path)
    with pytest.raises(UserError, match=r"metrics\.jsonl is broken: line 2"):
        read_run(write_run([step_row(1)], end="{nonsense}\n"))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", b"5\n", "line 1 is not as heedful writes it"),
        ("metrics.jsonl", b'{"step": 1}\n', "line 1 is not as heedful writes it"),
        ("metrics.jsonl", b'{"kind": "train", "step": "one"}\n', "line 1 is not as heedful writes it"),
        ("metrics.jsonl", b"\xff\n", "it is not valid UTF-8"),
        ("data-report.jsonl", b"garbage\n", "line 1 is not valid JSON"),
        ("data-report.jsonl", b'{"rule": "duplicate"}\n', "line 1 is not as heedful writes it"),
        ("config.json", b"{}", "it does not hold the settings of a run"),
        ("config.json", b'{"saved": 5, "requested": 7}', "it does not hold the settings of a run"),
    ],
)
def test_what_is_broken_is_named(write_run, step_row, file: str, content: bytes, message: str) -> None:
    folder = write_run([step_row(1)])
    (folder / "run" / file).write_bytes(content)
    with pytest.raises(UserError, match=f"{file} is broken: {message}"):
        read_run(folder)


def test_half_a_data_report_and_a_broken_state_are_no_obstacle(write_run, step_row) -> None:
    folder = write_run([step_row(1)])
    (folder / "run" / "data-report.jsonl").write_text('{"rule": "x", "act')
    (state,) = (folder / "run" / "checkpoints").glob("*/state.json")
    for content in ("", "5", "{}"):
        state.write_text(content)
        record = read_run(folder)
        assert (record.data_report, record.finished, len(record.steps)) == ([], False, 1)
