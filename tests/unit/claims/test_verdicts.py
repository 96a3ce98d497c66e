"""The rules of the verdicts: which parts of a claim were found, and what it takes to say that it holds."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heedful.claims.evidence import weighed
from heedful.claims.learning.little_language import batch_of, draw_sentences
from heedful.claims.learning.text_trials import TextTrial, small_config
from heedful.claims.measured import (
    batches,
    complexity,
    embeddings,
    families,
    feed_forward,
    head_roles,
    heads,
    local_attention,
    long_range,
    objectives,
    parallel_training,
    position_schemes,
    resolution,
    scorings,
    tokens,
    variance,
)
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


def test_a_doubling_of_the_inner_width_is_compared_with_a_doubling() -> None:
    losses = {1: [2.5, 2.4], 2: [2.2, 2.1], 4: [2.0, 1.9], 8: [1.9, 1.8]}
    assert feed_forward.judge([0.0], 1, losses)[0] == "holds"
    # From 1d to 4d it gains more than from 4d to 8d, but not from 2d to 4d.
    verdict, words = feed_forward.judge([0.0], 1, {**losses, 8: [1.7, 1.6]})
    assert verdict == "holds in part" and words.endswith("not found: 8d gains less over 4d than 4d over 2d")
    assert feed_forward.judge([0.0], 2, losses)[0] == "does not hold at this size"


def test_a_transformer_that_has_not_learned_pairs_is_not_compared() -> None:
    speed = {"Transformer": [9.0, 8.0], "LSTM": [3.0, 2.0], "GRU": [4.0, 3.0]}
    loss = {"Transformer": [2.0, 2.1], "LSTM": [2.3, 2.2], "GRU": [2.4, 2.2]}
    steps = dict.fromkeys(parallel_training.KINDS, 2.0)
    assert parallel_training.judge(speed, loss, steps)[0] == "holds"
    # One run of a recurrent model is as good as the Transformer's.
    assert parallel_training.judge(speed, {**loss, "GRU": [2.4, 2.05]}, steps)[0] == "holds in part"
    assert parallel_training.judge(speed, {**loss, "Transformer": [3.0, 3.0]}, steps)[0] == "too short to tell"


def test_models_that_train_in_parallel_or_not_are_about_as_large() -> None:
    trial = parallel_training.trial_of(1, 3, 0.004)
    models = [parallel_training.new_model(kind, trial) for kind in parallel_training.KINDS]
    first, *others = (sum(each.numel() for each in model.parameters()) for model in models)
    assert others == pytest.approx([first, first], rel=0.03)


def test_embeddings_are_judged_by_quality_alone() -> None:
    right = {way: [0.9, 0.8] for way in embeddings.WAYS}
    losses = {way: [0.3, 0.2] for way in embeddings.WAYS} | {"not scaled, shared": [0.5, 0.4]}
    assert embeddings.judge(0.05, 1.4, losses, right, 0.1)[0] == "holds"
    worse = losses | {"not scaled, shared": [0.5, 0.1], "scaled, not shared": [0.2, 0.2]}
    assert embeddings.judge(0.05, 1.4, worse, right, 0.1)[0] == "does not hold at this size"
    assert embeddings.judge(0.05, 1.4, losses, right | {"scaled, shared": [0.4]}, 0.1)[0] == "too short to tell"


def test_less_padding_alone_is_not_enough_for_batches() -> None:
    plain, bucketed = batches.WAYS
    padding = {plain: 0.4, bucketed: 0.1}
    speed, loss = {plain: [4.0, 5.0], bucketed: [6.0, 7.0]}, {plain: [0.5, 0.4], bucketed: [0.3, 0.2]}
    assert batches.judge(padding, speed, loss)[0] == "holds"
    alike = {plain: [4.0, 5.0], bucketed: [4.5, 7.0]}, {plain: [0.5, 0.4], bucketed: [0.3, 0.45]}
    assert batches.judge(padding, *alike)[0] == "does not hold at this size"


def test_one_window_is_judged_and_a_path_of_two_steps_must_be_learned() -> None:
    losses, recall = {2: [3.0], 16: [2.1], 32: [2.01], 128: [2.0]}, {4: 0.1, 16: 0.1, 17: 0.8, 33: 1.0}
    assert local_attention.judge(losses, recall, 3.0)[0] == "holds"
    assert local_attention.judge({**losses, 16: [2.0], 32: [2.1]}, recall, 3.0)[0] == "holds in part"
    assert local_attention.judge({**losses, 32: [2.1]}, {**recall, 17: 0.3}, 0.9)[0] == "does not hold at this size"
    assert local_attention.judge(losses, {**recall, 33: 0.7}, 3.0)[0] == "too short to tell"


def test_a_family_must_be_clearly_best_somewhere() -> None:
    alike = {family: {task: [0.97, 0.98] for task in families.TASKS} for family in families.FAMILIES}
    wrong = {"one": 0.3}
    verdict, words = families.judge(alike, wrong)
    assert verdict == "holds in part" and "all families do alike in: classify, continue, reverse" in words
    clear = {family: {**tasks, "reverse": [0.6, 0.7]} for family, tasks in alike.items()}
    clear["encoder-decoder"]["reverse"] = [0.99, 0.98]
    assert families.judge(clear, wrong)[0] == "holds"
    other = {family: {task: [0.9, 0.9] for task in families.TASKS} for family in families.FAMILIES}
    for task, family in {"classify": "decoder-only", "continue": "encoder-only", "reverse": "encoder-only"}.items():
        other[family] = {**other[family], task: [0.99, 0.98]}
    assert families.judge(other, wrong)[0] == "does not hold at this size"


def test_objectives_are_compared_run_by_run_once_they_have_learned_pairs() -> None:
    found = {
        "GPT": {"at the end": [2.0, 1.9], "in the middle": [2.1, 2.0]},
        "BERT": {"at the end": [2.6, 2.5], "in the middle": [1.8, 1.7]},
        "XLNet": {"at the end": [2.2, 2.3], "in the middle": [1.9, 1.8]},
    }
    assert objectives.judge(found)[0] == "holds"
    close = {**found, "XLNet": {"at the end": [2.0, 2.3], "in the middle": [1.9, 1.8]}}
    verdict, words = objectives.judge(close)
    assert verdict == "holds in part" and words.endswith("not found: GPT best at the end")
    poor = {**found, "BERT": {"at the end": [3.0, 3.0], "in the middle": [2.9, 2.9]}}
    assert objectives.judge(poor)[0] == "too short to tell"


def test_positions_that_collapse_when_interpolated_do_not_hold() -> None:
    def found(interpolated: float, control: float) -> dict[str, list[float]]:
        rows = zip(resolution.WAYS, (interpolated, control, 0.9), strict=True)
        return {way: [0.9 if factor == 1 else share for factor in resolution.FACTORS] for way, share in rows}

    assert resolution.judge(found(0.8, 0.4))[0] == "holds"
    assert resolution.judge(found(0.6, 0.4))[0] == "holds in part"
    assert resolution.judge(found(0.44, 0.25))[0] == "does not hold at this size"
    assert resolution.judge(found(0.5, 0.6))[0] == "does not hold at this size"


def test_what_slows_a_convolution_down_too_is_no_waiting_of_steps() -> None:
    assert complexity.relative_spread({"LSTM": [2.0, 3.0, 8.0], "convolution": [1.0, 1.0, 2.0]}) == 2.0


def test_two_roles_are_different_tasks_whatever_is_lost_without_a_head() -> None:
    found = ["positional", "aligns words", "none of these"]
    assert head_roles.judge(found, [0.1, 0.1, 0.1], 0.9)[0] == "holds"
    assert head_roles.judge(["positional", "none of these"], [0.0, 9.0], 0.9)[0] == "holds in part"
    assert head_roles.judge(["none of these"], [0.0], 0.9)[0] == "does not hold at this size"


def test_the_start_is_a_delimiter_for_heads_of_the_decoder() -> None:
    batch = batch_of(draw_sentences(3, (1,)))
    T = batch.input_BT.shape[1]
    weights_BTS = torch.zeros(3, T, T)
    weights_BTS[:, :, 0] = 1.0
    assert head_roles.role_of(weights_BTS, batch, "decoder").delimiters == pytest.approx(1.0)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_only_what_lies_beyond_the_trained_length_counts_of_longer_texts(factor: int) -> None:
    seen: list[tuple[int, int]] = []

    class Place(nn.Module):
        """Predicts by the place of a character in its window alone, and keeps what it was asked for."""

        def forward(self, ids_NT: torch.Tensor) -> torch.Tensor:
            seen.extend((int(row[0]), ids_NT.shape[1]) for row in ids_NT)
            places = torch.arange(ids_NT.shape[1])
            return F.one_hot(places % 29, 29).float().expand(len(ids_NT), -1, -1)

    length = 7
    ids_BX = torch.arange(4 * length + 1).repeat(3, 1)
    logp = F.one_hot(torch.arange(29), 29).float().log_softmax(-1)
    # The targets are all that follow the first 7, each at its place in a window that begins `back` before it.
    back = {1: 0, 2: length, 4: None}[factor]
    expected = []
    for target in range(length, 4 * length):
        place = target if back is None else target % length + back
        expected.append(-float(logp[place, target + 1]))
    found = position_schemes.loss_beyond(Place(), ids_BX, length, factor)
    assert found == pytest.approx(sum(expected) / len(expected), rel=1e-5)
    assert {asked for _, asked in seen} == {factor * length}


def test_a_model_of_each_seed_is_looked_into(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(False, Shelf(tmp_path, "own"), Shelf(tmp_path, "shared"), str)
    monkeypatch.setattr(variance, "WIDTHS", variance.WIDTHS[:3])
    monkeypatch.setattr(variance, "common_trial", lambda bench, seed=1: TextTrial(small_config(16, 1), seed, 2, rows=2))
    found = {each.name: each for each in variance.measure(bench).numbers}
    assert found["trained models: at unit variance, divided by d_k"].runs == 3 * 4
