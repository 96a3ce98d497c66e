"""How well predicted classes agree with the right ones; classes are numbers from 0 on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.integer[Any]]


def accuracy(labels: Classes, predictions: Classes) -> float:
    """The share of predictions that are right."""
    return float(np.mean(labels == predictions))


def confusion_matrix(labels: Classes, predictions: Classes, num_classes: int) -> NDArray[np.int64]:
    """How often each class (row) was predicted as each class (column)."""
    pairs = labels.astype(np.int64) * num_classes + predictions
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes).astype(np.int64)


def macro_f1(labels: Classes, predictions: Classes, num_classes: int) -> float:
    """The mean over classes of the harmonic mean of precision and recall; classes that never occur do not count."""
    matrix = confusion_matrix(labels, predictions, num_classes)
    occurring = matrix.sum(0) + matrix.sum(1)
    return float(np.mean(2 * np.diag(matrix)[occurring > 0] / occurring[occurring > 0]))
