"""How good predicted classes are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.integer]
MOST_SHOWN_LABELS = 20


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


@dataclass(frozen=True)
class LabelEvaluation:
    """Scores of a test set; `confusion` says how often each label (row) was taken for each label (column)."""

    accuracy: float
    macro_f1: float
    count: int
    labels: tuple[str, ...]
    confusion: list[list[int]]

    def confusion_lines(self) -> list[str]:
        """The confusion as a table, if it is small enough to be read."""
        if len(self.labels) > MOST_SHOWN_LABELS:
            return []
        names = [label[:12] for label in self.labels]
        width = max(len(name) for name in [*names, f"{self.count:,}"]) + 2
        head = " " * width + "".join(f"{name:>{width}}" for name in names)
        rows = zip(names, self.confusion, strict=True)
        table = [f"{name:>{width}}" + "".join(f"{count:>{width},}" for count in row) for name, row in rows]
        return ["", "labels (rows) and what they were taken for (columns):", head, *table]


def label_evaluation(labels: Classes, predictions: Classes, names: tuple[str, ...]) -> LabelEvaluation:
    """The scores of predicted labels, whose names are given in the order of their numbers."""
    confusion = confusion_matrix(labels, predictions, len(names))
    return LabelEvaluation(accuracy(labels, predictions), macro_f1(confusion), len(labels), names, confusion.tolist())
