import numpy as np
import pytest

from heedful.tasks.validation_signs import Answers, summarise_answers, unrelated_loss


def test_the_commonest_answer_beside_the_commonest_right_one() -> None:
    found, wanted = ["a", "b", "a", "a", "c"], ["x", "b", "c", "b", "d"]
    assert summarise_answers(found, wanted, str.upper) == Answers(5, "A", 0.6, 0.4)


def test_the_unrelated_loss_is_the_mean_over_all_pairs_of_input_and_label() -> None:
    random = np.random.default_rng(3)
    labels = random.integers(0, 5, 7)
    logits = random.normal(size=(7, 5))
    log_probabilities = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    pairs = [-log_probabilities[row, label] for row in range(7) for label in labels]
    assert unrelated_loss(log_probabilities.sum(0), labels) == pytest.approx(np.mean(pairs), abs=1e-12)
