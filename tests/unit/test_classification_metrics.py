import numpy as np
import pytest

from heedful.classification_metrics import accuracy, confusion_matrix, macro_f1

LABELS = np.array([0, 0, 1, 1, 1, 2, 4])
PREDICTIONS = np.array([0, 1, 1, 1, 2, 2, 0])


def test_by_hand() -> None:
    assert accuracy(LABELS, PREDICTIONS) == pytest.approx(4 / 7)
    matrix = confusion_matrix(LABELS, PREDICTIONS, 5)
    assert matrix.tolist() == [[1, 1, 0, 0, 0], [0, 2, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    # Precision and recall of the classes 0, 1, 2 and 4: (1/2, 1/2), (2/3, 2/3), (1/2, 1), (0, 0); 3 never occurs.
    assert macro_f1(LABELS, PREDICTIONS, 5) == pytest.approx((1 / 2 + 2 / 3 + 2 / 3 + 0) / 4)


def test_all_right_and_all_wrong() -> None:
    assert accuracy(LABELS, LABELS) == macro_f1(LABELS, LABELS, 7) == 1.0
    assert macro_f1(LABELS, LABELS + 5, 11) == 0.0
