"""The measures of the other claims, on cases whose answer is known."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from heedful.claims.evidence import clearly_below, fitted_power, number, series, shown_loss
from heedful.claims.learning.clock import seconds_now
from heedful.claims.learning.course import PILOT_SEED, RATES, best_rate
from heedful.claims.learning.recurrent_text import RecurrentReader, width_for
from heedful.claims.learning.text import held_out_scores, reference_text, windows
from heedful.claims.learning.text_trials import TextTrial, small_config, tried, tuned
from heedful.claims.measured import (
    batches,
    complexity,
    depth,
    embeddings,
    families,
    feed_forward,
    local_attention,
    long_range,
    objectives,
    parallel_training,
    position_schemes,
    resolution,
    tokens,
)
from heedful.claims.workbench import Shelf, Workbench
from heedful.models.xlnet import XLNet


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_fitted_on_made_up_times(power: float) -> None:
    lengths = [3, 7, 31, 101]
    assert fitted_power(lengths, [0.013 * n**power for n in lengths]) == pytest.approx(power)


def test_numbers_and_lines_have_the_spread_of_their_runs() -> None:
    found = number("loss", [2.0, 5.0, 11.0])
    assert (found.mean, found.low, found.high, found.runs) == (6.0, 2.0, 11.0, 3)
    line = series("loss", [1, 2], [[3.0, 5.0], [7.0, 1.0]])
    assert (line.y, line.low, line.high) == ((5.0, 3.0), (3.0, 1.0), (7.0, 5.0))
    assert clearly_below([1, 2], [3, 4]) and not clearly_below([1, 3.5], [3, 4])


def test_where_two_lines_cross() -> None:
    lengths = [100, 200, 400, 800]
    # n^2 against 300 n: they cross at 300.
    assert complexity.crossing(lengths, [n**2 for n in lengths], [300 * n for n in lengths]) == pytest.approx(300)
    assert complexity.crossing(lengths, [1] * 4, [2] * 4) is None


def test_verdicts_on_complexity() -> None:
    assert complexity.judge(complexity.POWERS, 300.0, 5.0)[0] == "holds"
    assert complexity.judge({**complexity.POWERS, "LSTM": 2.0}, None, 5.0)[0] == "holds in part"


def test_a_network_by_position_reaches_one_and_a_convolution_its_neighbours() -> None:
    torch.manual_seed(1)
    by_position = nn.Linear(5, 5)
    x_BTD = torch.randn(1, 11, 5)
    assert feed_forward.reached_positions(by_position, x_BTD) == 1
    assert feed_forward.shuffle_error(by_position, x_BTD, torch.randperm(11)) < 1e-6

    class Neighbours(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x.roll(1, 1) + x.roll(-1, 1)

    assert feed_forward.reached_positions(Neighbours(), x_BTD) == 3
    assert feed_forward.shuffle_error(Neighbours(), x_BTD, torch.randperm(11)) > 0.1


def test_lengths_of_vectors() -> None:
    assert embeddings.mean_norm(torch.tensor([[3.0, 4.0], [0.0, 1.0]])) == pytest.approx(3.0)
    plain, scaled, position = embeddings.norms(128, 1)
    # A sine and a cosine of each rate: the squares of a position sum to d / 2.
    assert position == pytest.approx(8.0, rel=1e-4) and scaled == pytest.approx(plain * 128**0.5)
    assert plain == pytest.approx(1.0, rel=0.05)


def test_padding_of_known_batches() -> None:
    lengths = [(2, 3), (4, 3), (2, 2)]
    # 2 rows of 4 + 3, of which 12 are real, and one of 4 without padding.
    assert batches.padding_share(lengths, [[0, 1], [2]]) == pytest.approx(1 - 16 / 18)
    assert batches.padding_share(lengths, [[0], [1], [2]]) == 0


@pytest.mark.parametrize("way", batches.WAYS)
def test_batches_hold_each_sentence_once(way: str) -> None:
    sentences = batches.draw_sentences(101, (1,), 4)
    found = batches.batches_of(way, sentences, 300, 1, 0)
    assert sorted(index for batch in found for index in batch) == list(range(101))


def test_recall_rows_ask_for_their_first_token() -> None:
    ids, answers = long_range.recall_rows(13, 31, (1, 2))
    assert ids.shape == (31, 14) and torch.equal(ids[:, 0], answers)
    assert bool((ids[:, 1:-1] >= long_range.ANSWERS).all()) and bool((ids[:, -1] == long_range.ASK).all())


def test_far_gradients_of_known_functions() -> None:
    x_BTD = torch.randn(2, 5, 3)
    halved = torch.tensor([0.5**4, 0.5**3, 0.5**2, 0.5, 1.0])[None, :, None]
    assert long_range.far_gradient(lambda x: (x * halved).sum(1, keepdim=True), x_BTD, 1) == pytest.approx(0.5**4)


def test_far_gradients_of_what_a_norm_puts_out_are_no_rounding() -> None:
    torch.manual_seed(1)
    x_BTD = torch.randn(2, 5, 7)
    near, far, norm = torch.randn(7, 7), torch.randn(7, 7), nn.LayerNorm(7)

    def normed(x: torch.Tensor) -> torch.Tensor:
        return norm.to(x.dtype)((x[:, -1] @ near.to(x) + 0.1 * x[:, 0] @ far.to(x))[:, None])

    exact = long_range.far_gradient(normed, x_BTD.double(), 1)
    assert long_range.far_gradient(normed, x_BTD, 1) == pytest.approx(exact, rel=1e-4)
    # By moving each input a little: the slope of the output in the direction that the gradient is taken in.
    probe = torch.randn(7, generator=torch.Generator().manual_seed(1)).double()
    slopes = [torch.zeros(2, 7, dtype=torch.float64) for _ in range(2)]
    for slope, place in zip(slopes, (0, -1), strict=True):
        for row in range(2):
            for each in range(7):
                moved = [x_BTD.double().clone() for _ in range(2)]
                for step, inputs in zip((1e-6, -1e-6), moved, strict=True):
                    inputs[row, place, each] += step
                above, below = ((normed(inputs)[:, -1] * probe).sum() for inputs in moved)
                slope[row, each] = ((above - below) / 2e-6).detach()
    assert exact == pytest.approx(float(slopes[0].norm() / slopes[1].norm()), rel=1e-4)


@pytest.mark.parametrize("kind", long_range.KINDS)
def test_tiny_far_gradients_are_told_from_zero(kind: str) -> None:
    found = long_range.first_gradient(long_range.new_model(kind, 512, 1), long_range.recall_rows(512, 2, (1,))[0], 1)
    assert found > 1e-4 if kind == "Transformer" else 0 < found < 1e-15


def test_reach_ends_where_recall_fails() -> None:
    assert long_range.reach((8, 16, 32), [1.0, 0.95, 0.4]) == 16
    assert long_range.reach((8, 16, 32), [0.5, 1.0, 1.0]) == 0


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_recurrent_readers_have_the_parameters_that_are_asked_for(cell) -> None:
    width = width_for(60_000, 37, 2, cell)
    model = RecurrentReader(37, width, 2, cell)
    assert sum(each.numel() for each in model.parameters()) == pytest.approx(60_000, rel=0.03)


def test_each_kind_gets_the_rate_at_which_its_pilot_ends_lowest(tmp_path) -> None:
    assert best_rate({0.002: 2.5, 0.004: 2.0, 0.008: 3.0}.__getitem__) == 0.004
    bench = Workbench(True, Shelf(tmp_path, "own"), Shelf(tmp_path, "shared"), str)
    trial = TextTrial(small_config(16, 1), 1, 9, rows=2)
    best = tuned(bench, trial)
    ends = {
        rate: tried(bench, replace(trial, seed=PILOT_SEED, steps=3, learning_rate=rate)).train_loss for rate in RATES
    }
    assert best == replace(trial, learning_rate=min(ends, key=ends.__getitem__))
    assert len(list(tmp_path.iterdir())) == len(RATES)  # the pilots are kept, and were not run again


def test_a_loss_that_has_burst_is_a_number_that_charts_can_show() -> None:
    assert shown_loss(float("nan")) == shown_loss(float("inf")) == shown_loss(1e9) == 99.0 and shown_loss(2.5) == 2.5


def test_on_one_core_time_is_that_of_the_processor() -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        began = seconds_now()
        time.sleep(0.1)
        assert seconds_now() - began < 0.05
        torch.set_num_threads(2)
        began = seconds_now()
        time.sleep(0.1)
        assert seconds_now() - began >= 0.09
    finally:
        torch.set_num_threads(threads)


def test_losses_are_read_off_at_places() -> None:
    assert parallel_training.loss_at([4.0, 2.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0], [2.0, 4.0]) == [3.0, 1.0]
    assert parallel_training.loss_at([4.0], [1.0], [1.0, 9.0]) == [4.0, 4.0]


def test_positions_are_cropped_and_tiled() -> None:
    table = torch.arange(6.0).view(2, 3, 1)
    assert resolution.cropped_or_tiled(table, (1, 2))[..., 0].tolist() == [[0, 1]]
    assert resolution.cropped_or_tiled(table, (3, 4))[..., 0].tolist() == [[0, 1, 2, 0], [3, 4, 5, 3], [0, 1, 2, 0]]


def test_the_class_of_a_dot_is_the_quarter_of_its_middle() -> None:
    images, classes = resolution.dots(97, 24, (1,))
    for image, found in zip(images[:, 0], classes, strict=True):
        rows, columns = np.nonzero(image.numpy() == 220)
        middle = (rows.min() + rows.max() + 1) / 2, (columns.min() + columns.max() + 1) / 2
        assert int(found) == 2 * (middle[0] > 12) + (middle[1] > 12)


def test_verdicts_on_positions() -> None:
    alike = {"sinusoidal": [[2.0, 2.05, 2.2]], "learned": [[2.02, 2.5, 3.0]]}
    assert position_schemes.judge(alike)[0] == "holds"
    worse = {"sinusoidal": [[2.0, 3.0, 4.0]], "learned": [[2.02, 2.5, 3.0]]}
    assert position_schemes.judge(worse)[0] == "holds in part"


def test_verdicts_on_depth_ask_for_both_norms() -> None:
    shares = dict.fromkeys(depth.KINDS, 1.0)
    worse = {kind: [2.5, 2.6] for kind in depth.KINDS[2:]}
    assert depth.judge(shares, {"pre-norm": [2.1], "post-norm": [2.2], **worse})[0] == "holds"
    assert depth.judge(shares, {"pre-norm": [2.1], "post-norm": [2.9], **worse})[0] == "holds in part"
    assert depth.judge(shares, {"pre-norm": [2.6], "post-norm": [2.9], **worse})[0] == "does not hold at this size"


def test_answers_of_the_three_tasks() -> None:
    ids, answers = families.draw("reverse", 7, (1, 2))
    assert torch.equal(ids.flip(1), answers)
    ids, answers = families.draw("continue", 7, (1, 2))
    assert torch.equal(ids[:, families.LENGTH % families.PERIOD], answers[:, 0])
    ids, answers = families.draw("classify", 7, (1, 2))
    for row, found in zip(ids.tolist(), answers[:, 0].tolist(), strict=True):
        assert all(row.count(found) >= row.count(other) for other in range(families.CLASSES))


@pytest.mark.parametrize("family", families.FAMILIES)
def test_no_family_is_shown_its_answer(family: str) -> None:
    model = families.new_model(family, 1).eval()
    ids, answer = families.draw("reverse", 5, (1, 1))
    other = answer.clone()
    other[:, -1] = (other[:, -1] + 1) % families.TOKENS
    assert torch.equal(families.answers(model, ids, answer), families.answers(model, ids, other))


@pytest.mark.parametrize("kind", objectives.KINDS)
def test_a_hidden_character_does_not_reach_its_own_guess(kind: str) -> None:
    model = objectives.new_model(kind, 1).eval()
    ids = windows(reference_text().held_out, 3, objectives.LENGTH, (1,))
    end, hole = ids.clone(), ids.clone()
    end[:, -1] = (end[:, -1] + 1) % 50
    hole[:, objectives.HOLE] = (hole[:, objectives.HOLE] + 1) % 50
    assert torch.equal(objectives.at_the_end(model, ids), objectives.at_the_end(model, end))
    assert torch.equal(objectives.in_the_hole(model, ids), objectives.in_the_hole(model, hole))
    right = ids.clone()
    right[:, -1] = (right[:, -1] + 1) % 50
    sees_the_right = not torch.equal(objectives.in_the_hole(model, ids), objectives.in_the_hole(model, right))
    assert sees_the_right == (kind != "GPT")


def test_trying_all_characters_sees_what_follows() -> None:
    model = objectives.new_model("GPT", 1).eval()
    ids = windows(reference_text().held_out, 2, objectives.LENGTH, (1,))
    with torch.no_grad():
        found = objectives.by_trying_all(model, ids)
        row = ids[0].clone()
        row[objectives.HOLE] = 5
        logp = model(row[None, :-1]).log_softmax(-1)[0]
        whole = sum(float(logp[place - 1, row[place]]) for place in range(objectives.HOLE, len(row)))
    assert float(found[0, 5]) == pytest.approx(whole, rel=1e-4)


def test_losses_in_any_order_are_those_of_a_model_that_knows_nothing() -> None:
    model = objectives.new_model("XLNet", 1)
    assert isinstance(model, XLNet)
    nn.init.zeros_(model.embedding.weight)
    ids = windows(reference_text().train, 5, objectives.LENGTH + 1, (1,))
    loss = objectives.ordered_loss(model, ids, (1,)).detach()
    assert float(loss) == pytest.approx(np.log(reference_text().vocabulary_size), rel=1e-4)


def test_held_out_scores_of_a_model_that_knows_the_answer() -> None:
    class Uniform(nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return torch.zeros(*ids.shape, reference_text().vocabulary_size)

    loss, right = held_out_scores(Uniform(), 31)
    assert loss == pytest.approx(np.log(reference_text().vocabulary_size)) and right < 0.2


def test_windows_hide_what_is_far_away() -> None:
    model = local_attention.set_window(objectives.new_model("GPT", 1).eval(), 3)
    ids = windows(reference_text().train, 1, 31, (1,))
    other = ids.clone()
    other[:, 0] = (other[:, 0] + 1) % 50
    changed = (model(ids) - model(other)).abs().amax(-1)[0] > 0
    # Two layers reach two positions back each.
    assert changed[:5].all() and not changed[5:].any()


def test_snippets_of_training_and_of_the_test_do_not_meet() -> None:
    texts, vocabulary = tokens.topic_ids("words")
    assert len(texts) == tokens.TOPICS and vocabulary == tokens.WORDS + 1
    ids, classes = tokens.snippets("words", 17, (1,), unseen=True)
    for row, topic in zip(ids, classes, strict=True):
        tail = texts[topic][len(texts[topic]) * 4 // 5 :].unfold(0, len(row), 1)
        assert bool((tail == row).all(1).any())
