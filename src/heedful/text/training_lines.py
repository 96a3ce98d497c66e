"""What the training lines were like, and so which lines a model can be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from heedful.config import require
from heedful.text.sentences import sentence_spans

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Lines whose sentences are counted: more would change no percentile by much.
COUNTED_LINES = 10_000


@dataclass(frozen=True)
class TrainingLines:
    """Subwords and sentences per source line: the median, what 99 % of the lines do not exceed, and the most."""

    subwords_median: int
    subwords_99: int
    subwords_most: int
    sentences_median: int
    sentences_99: int
    sentences_most: int

    def __post_init__(self) -> None:
        for each in fields(self):
            require(getattr(self, each.name), f"training_lines.{each.name}", 1)

    def __str__(self) -> str:
        return (
            f"{self.subwords_median} subwords (99 %: up to {self.subwords_99}, longest {self.subwords_most}), "
            f"{self.sentences_median} sentence{'s' if self.sentences_median > 1 else ''} "
            f"(99 %: up to {self.sentences_99}, most {self.sentences_most})"
        )


def measure_lines(
    lengths: npt.NDArray[np.integer], text_of: Callable[[int], str], language: str | None
) -> TrainingLines:
    """Measure the lines of a training: the subwords of all, and the sentences of some, evenly spread."""
    import numpy as np

    count = len(lengths)
    places = np.unique(np.linspace(0, count - 1, min(count, COUNTED_LINES)).astype(np.int64))
    sentences = np.array([len(sentence_spans(text_of(int(place)), language)) for place in places])
    return TrainingLines(*_three(np.asarray(lengths)), *_three(sentences))


def _three(values: npt.NDArray[np.integer]) -> list[int]:
    """The median, the least value that 99 % do not exceed, and the largest, each at least 1."""
    import numpy as np

    places = [-(-len(values) * share // 100) - 1 for share in (50, 99, 100)]
    ordered = np.partition(values, places)
    return [max(1, int(ordered[place])) for place in places]
