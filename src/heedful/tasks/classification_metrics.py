"""How good predicted classes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.integer]
# With more labels than this, the data has no confusion matrix; the pairs mixed up most often are always there.
MOST_LABELS_OF_A_MATRIX = 100
MOST_CONFUSED_PAIRS = 20


def confusion_matrix(labels: Classes, predictions: Classes, num_classes: int) -> NDArray[np.int64]:
    """How often each class (row) was taken for each class (column)."""
    pairs = labels.astype(np.int64) * num_classes + predictions
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def accuracy(labels: Classes, predictions: Classes) -> float:
    """The share of predictions that are right."""
    return float(np.mean(labels == predictions))


def macro_f1(confusion: NDArray[np.int64]) -> float:
    """The unweighted mean F1 of all classes that occur as labels or predictions."""
    right, both = np.diag(confusion), confusion.sum(0) + confusion.sum(1)
    present = both > 0
    return float(np.mean(2 * right[present] / both[present]))


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, and the number of labels they were measured on."""

    precision: float
    recall: float
    f1: float
    count: int


@dataclass(frozen=True)
class NamedScores(Scores):
    """The scores of one label, or of one type of entities, and how often it was answered."""

    name: str
    answered: int


@dataclass(frozen=True)
class Confused:
    """A label that was taken for another, and how often."""

    label: str
    taken_for: str
    count: int


@dataclass(frozen=True)
class UnknownLabel:
    """A label of a test set that the model does not know, how often it occurs, and where it occurs first."""

    label: str
    count: int
    first: str


@dataclass(frozen=True)
class LabelEvaluation:
    """Scores on a test set; averages are over labels that occur in it or were predicted.

    `labels` are those that the model knows, then the `unknown` ones, which are always wrong.
    `confusion` says how often each label (row) was taken for each label (column), unless there are too many of them.
    """

    accuracy: float
    macro_f1: float
    count: int
    labels: tuple[str, ...]
    confusion: list[list[int]] | None
    per_label: list[NamedScores]
    macro_average: Scores
    weighted_average: Scores
    most_confused: list[Confused]
    entities: EntityEvaluation | None = None
    unknown: list[UnknownLabel] = field(default_factory=list)


@dataclass(frozen=True)
class EntityEvaluation:
    """How many entities of a tagged text were found, with exactly the right words and type."""

    overall: Scores
    macro_average: Scores
    weighted_average: Scores
    per_type: list[NamedScores]


def scores(right: int, answered: int, count: int) -> Scores:
    """The scores for `right` correct ones out of those that were `answered`, and out of the `count` that exist."""
    total = answered + count
    return Scores(
        right / answered if answered else 0.0,
        right / count if count else 0.0,
        2 * right / total if total else 0.0,
        count,
    )


def named_scores(name: str, right: int, answered: int, count: int) -> NamedScores:
    """The same, with a name."""
    found = scores(right, answered, count)
    return NamedScores(found.precision, found.recall, found.f1, count, name, answered)


def averages(per_name: Sequence[NamedScores]) -> tuple[Scores, Scores]:
    """The mean scores, unweighted and weighted by their counts."""
    values = np.array([(each.precision, each.recall, each.f1) for each in per_name]).reshape(-1, 3)
    counts = np.array([each.count for each in per_name], dtype=np.int64)
    total = int(counts.sum())
    alike = values.mean(0) if len(values) else np.zeros(3)
    weighted = counts @ values / total if total else np.zeros(3)
    first, second = (Scores(float(p), float(r), float(f), total) for p, r, f in (alike, weighted))
    return first, second


def label_evaluation(labels: Classes, predictions: Classes, names: tuple[str, ...]) -> LabelEvaluation:
    """The scores of predicted labels; `names` are in the order of the labels' numbers."""
    size = len(names)
    right = np.bincount(labels[labels == predictions], minlength=size)
    counts, answered = (np.bincount(each, minlength=size) for each in (labels, predictions))
    present = np.flatnonzero(counts + answered)
    per_label = [named_scores(names[n], int(right[n]), int(answered[n]), int(counts[n])) for n in present]
    macro, weighted = averages(per_label)
    confusion = confusion_matrix(labels, predictions, size).tolist() if size <= MOST_LABELS_OF_A_MATRIX else None
    confused = most_confused(labels, predictions, names)
    share = accuracy(labels, predictions)
    return LabelEvaluation(share, macro.f1, len(labels), names, confusion, per_label, macro, weighted, confused)


def most_confused(labels: Classes, predictions: Classes, names: tuple[str, ...]) -> list[Confused]:
    """The pairs of labels that were mixed up most often, found without a matrix of all pairs."""
    wrong = labels != predictions
    pairs, counts = np.unique(np.stack([labels[wrong], predictions[wrong]]), axis=1, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CONFUSED_PAIRS]
    return [Confused(names[pairs[0, n]], names[pairs[1, n]], int(counts[n])) for n in order]
