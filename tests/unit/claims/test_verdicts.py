"""The rules of the verdicts: which parts of a claim were found, and what it takes to say that it holds."""

import pytest

from heedful.claims.evidence import weighed
from heedful.claims.learning.text_trials import TextTrial, small_config
from heedful.claims.measured import variance
from heedful.claims.workbench import Shelf, Workbench


@pytest.mark.parametrize(
    ("parts", "verdict", "words"),
    [
        ({"one": True, "two": True}, "holds", "seen; found: one, two"),
        ({"one": True, "two": False, "three": True}, "holds in part", "seen; found: one, three; not found: two"),
        ({"one": False, "two": False}, "does not hold at this size", "seen; not found: one, two"),
    ],
)
def test_a_verdict_names_its_parts(parts: dict[str, bool], verdict: str, words: str) -> None:
    assert weighed("seen", parts) == (verdict, words)


def test_a_law_that_fails_in_a_trained_model_is_named() -> None:
    assert variance.judge(1.0, [1.0], [9.0])[1].endswith("; not found: so do a trained model's")


def test_a_model_of_each_seed_is_looked_into(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(False, Shelf(tmp_path, "own"), Shelf(tmp_path, "shared"), str)
    monkeypatch.setattr(variance, "WIDTHS", variance.WIDTHS[:3])
    monkeypatch.setattr(variance, "common_trial", lambda bench, seed=1: TextTrial(small_config(16, 1), seed, 2, rows=2))
    found = {each.name: each for each in variance.measure(bench).numbers}
    assert found["trained models: at unit variance, divided by d_k"].runs == 3 * 4
