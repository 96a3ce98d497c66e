"""Labels of a test set that a model does not know: no answer can be right, so they count as wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heedful.errors import UserError
from heedful.tasks.classification_metrics import UnknownLabel

# At most this many are named in a line; all of them are in the figures.
MOST_NAMED = 8


class LabelNumbers:
    """The numbers of labels: first those that a model knows, then others as they come."""

    def __init__(self, known: Sequence[str]) -> None:
        self._numbers = {label: number for number, label in enumerate(known)}
        self._unknown: dict[str, UnknownLabel] = {}
        self._num_known, self._count = len(known), 0

    def number(self, label: str, place: str) -> int:
        """The number of a label; `place` says where it occurs."""
        self._count += 1
        number = self._numbers.setdefault(label, len(self._numbers))
        if number >= self._num_known:
            found = self._unknown.get(label, UnknownLabel(label, 0, place))
            self._unknown[label] = replace(found, count=found.count + 1)
        return number

    @property
    def names(self) -> tuple[str, ...]:
        """All labels, in the order of their numbers."""
        return tuple(self._numbers)

    @property
    def unknown(self) -> list[UnknownLabel]:
        """Those that the model does not know, in the order in which they came."""
        return list(self._unknown.values())

    def check(self) -> None:
        """Raise a UserError if the model knows none of the labels: the test set is for something else."""
        unknown, known = self.unknown, self.names[: self._num_known]
        if unknown and sum(each.count for each in unknown) == self._count:
            raise UserError(
                f"the model knows none of the labels of this test set, which begins with {unknown[0].label!r} "
                f"({unknown[0].first}): expected {listed(list(map(repr, known)))}"
            )


def unknown_line(unknown: Sequence[UnknownLabel], count: int) -> str:
    """A one-line summary of the unknown labels among `count`."""
    number = sum(each.count for each in unknown)
    named = listed([f"{each.label!r} ({each.count:,})" for each in unknown])
    return (
        f"{number:,} of {count:,} labels are unknown to the model and count as wrong, "
        f"the first in {unknown[0].first}: {named}"
    )


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many others there are."""
    more = f" and {len(names) - MOST_NAMED:,} others" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
