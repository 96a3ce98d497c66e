import numpy as np
import pytest

from heedful.tasks.classification_metrics import accuracy, confusion_matrix, macro_f1


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


def test_scores_of_each_label_by_hand() -> None:
    from heedful.tasks.classification_metrics import label_evaluation

    labels = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    found = np.array([0, 0, 0, 1, 1, 0, 1, 1])
    result = label_evaluation(labels, found, ("a", "b", "c", "never"))
    assert [(each.name, each.precision, each.recall, each.count, each.answered) for each in result.per_label] == [
        ("a", 3 / 4, 3 / 4, 4, 4),
        ("b", 1 / 4, 1 / 2, 2, 4),
        ("c", 0.0, 0.0, 2, 0),
    ]
    f1 = [3 / 4, 1 / 3, 0.0]
    assert [each.f1 for each in result.per_label] == pytest.approx(f1)
    assert result.macro_f1 == result.macro_average.f1 == pytest.approx(sum(f1) / 3)
    assert result.macro_average.precision == pytest.approx(1 / 3)
    assert result.weighted_average.f1 == pytest.approx((4 * f1[0] + 2 * f1[1]) / 8)
    assert result.weighted_average.recall == pytest.approx(result.accuracy)
    assert [(each.label, each.taken_for, each.count) for each in result.most_confused] == [
        ("c", "b", 2), ("a", "b", 1), ("b", "a", 1),
    ]  # fmt: skip


def test_scores_of_each_label_against_counting() -> None:
    from heedful.tasks.classification_metrics import label_evaluation

    random = np.random.default_rng(5)
    labels, found = random.integers(0, 11, 503), random.integers(0, 11, 503)
    result = label_evaluation(labels, found, tuple("abcdefghijk"))
    for number, each in enumerate(result.per_label):
        right = sum(1 for one, other in zip(labels, found, strict=True) if one == other == number)
        precision, recall = right / list(found).count(number), right / list(labels).count(number)
        assert (each.precision, each.recall) == pytest.approx((precision, recall))
        assert each.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert result.macro_f1 == pytest.approx(macro_f1(confusion_matrix(labels, found, 11)))


def test_many_labels_take_neither_memory_nor_screens() -> None:
    from heedful.tasks.classification_metrics import label_evaluation
    from heedful.tasks.label_tables import label_lines

    size = 200_000  # a matrix would take 320 gigabytes
    labels = np.arange(0, size, 40)
    found = np.where(labels % 3 == 0, (labels + 1) % size, labels)
    found[:7] = 5
    result = label_evaluation(labels, found, tuple(f"class {n}" for n in range(size)))
    assert result.confusion is None and len(result.most_confused) == 20
    lines = label_lines(result)
    assert len(lines) < 100 and any("50 of" in line for line in lines)
