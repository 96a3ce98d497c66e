"""How good predicted classes are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.integer]


def confusion_matrix(labels: Classes, predictions: Classes, num_classes: int) -> NDArray[np.int64]:
    """How often each class (row) was taken for each class (column)."""
    pairs = labels.astype(np.int64) * num_classes + predictions
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def accuracy(labels: Classes, predictions: Classes) -> float:
    """The share of predictions that are right."""
    return float(np.mean(labels == predictions))


def macro_f1(confusion: NDArray[np.int64]) -> float:
    """The mean F1 of all classes that occur, as labels or as predictions, each counting alike."""
    right, both = np.diag(confusion), confusion.sum(0) + confusion.sum(1)
    present = both > 0
    return float(np.mean(2 * right[present] / both[present]))
