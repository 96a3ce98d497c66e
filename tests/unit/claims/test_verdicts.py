"""The rules of the verdicts: which parts of a claim were found, and what it takes to say that it holds."""

import pytest

from heedful.claims.evidence import weighed
from heedful.claims.learning.text_trials import TextTrial, small_config
from heedful.claims.measured import heads, long_range, scorings, tokens, variance
from heedful.claims.workbench import Shelf, Workbench
from heedful.settings.attention import AttentionConfig


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


def test_recurrent_models_that_recall_nothing_are_not_compared() -> None:
    falls = {"Transformer": 3.0, "LSTM": 1e20, "GRU": 1e60}
    reaches = {"Transformer": 64, "LSTM": 32, "GRU": 16}
    assert long_range.judge(reaches, falls)[0] == "holds"
    assert long_range.judge({**reaches, "GRU": 0}, falls)[0] == "too short to tell"
    assert long_range.judge({**reaches, "LSTM": 64}, falls)[0] == "holds in part"
    assert long_range.judge({**reaches, "Transformer": 0}, {**falls, "LSTM": 2.0})[0] == "does not hold at this size"


def test_positions_take_no_part_of_narrow_keys() -> None:
    for config in (scorings.model_with(scorings.SCORINGS["additive"], 4), heads.model_with(AttentionConfig(32))):
        assert config.positions == "sinusoidal" and config.embedding.scaled


def test_patches_must_cost_and_tell_more_at_each_halving_and_in_each_run() -> None:
    right = {"words": [0.8, 0.9], "pixels": [0.9, 0.95]}
    dear, flat = {1: [9.0], 2: [3.0], 4: [2.0]}, {1: [9.0], 2: [3.0], 4: [4.0]}
    better, unclear = {1: [0.9, 0.95], 2: [0.5, 0.5], 4: [0.7, 0.8]}, {1: [0.9, 0.95], 2: [0.5, 0.5], 4: [0.7, 0.92]}
    assert tokens.judge(right, better, dear)[0] == "holds"
    assert tokens.judge(right, unclear, dear)[0] == tokens.judge(right, better, flat)[0] == "holds in part"
    assert tokens.judge(right, unclear, flat)[0] == "does not hold at this size"
    assert tokens.judge({**right, "words": [0.2, 0.4]}, better, dear)[0] == "too short to tell"


def test_a_model_of_each_seed_is_looked_into(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(False, Shelf(tmp_path, "own"), Shelf(tmp_path, "shared"), str)
    monkeypatch.setattr(variance, "WIDTHS", variance.WIDTHS[:3])
    monkeypatch.setattr(variance, "common_trial", lambda bench, seed=1: TextTrial(small_config(16, 1), seed, 2, rows=2))
    found = {each.name: each for each in variance.measure(bench).numbers}
    assert found["trained models: at unit variance, divided by d_k"].runs == 3 * 4
