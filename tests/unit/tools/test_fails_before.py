"""How the cases of a test function are summed up."""

from pathlib import Path

from fails_before import run

TESTS = """
import pytest

@pytest.mark.parametrize("case", range(3))
def test_passes(case):
    if case == 0:
        pytest.skip("not here")

@pytest.mark.parametrize("case", range(3))
def test_fails(case):
    if case == 0:
        pytest.skip("not here")
    assert case == 2

@pytest.mark.parametrize("case", range(3))
def test_is_skipped(case):
    pytest.skip("not here")
"""


def test_a_function_passes_if_no_case_fails_and_not_all_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_cases.py").write_text(TESTS, encoding="utf-8")
    found = run(tmp_path, ["test_cases.py"], 60)
    assert found.pop("test_fails").startswith("fails: assert 1 == 2")
    assert found == {"test_passes": "PASSES", "test_is_skipped": "skipped"}
