import numpy as np
import pytest

from heedful.classification_metrics import accuracy, confusion_matrix, macro_f1


def test_against_counting_by_hand() -> None:
    random = np.random.default_rng(1)
    labels, predictions = random.integers(0, 5, 97), random.integers(0, 5, 97)
    confusion = confusion_matrix(labels, predictions, 7)
    assert confusion.tolist() == [
        [sum((labels == row) & (predictions == column)) for column in range(7)] for row in range(7)
    ]
    scores = []
    for number in range(5):
        right = sum((labels == number) & (predictions == number))
        precision, recall = right / sum(predictions == number), right / sum(labels == number)
        scores.append(2 * precision * recall / (precision + recall))
    assert macro_f1(confusion) == pytest.approx(np.mean(scores))
    assert accuracy(labels, predictions) == pytest.approx(np.trace(confusion) / 97)


def test_a_class_that_is_never_right_counts_and_one_that_never_occurs_does_not() -> None:
    confusion = confusion_matrix(np.array([0, 0, 1]), np.array([0, 0, 0]), 5)
    assert macro_f1(confusion) == pytest.approx((0.8 + 0.0) / 2)
