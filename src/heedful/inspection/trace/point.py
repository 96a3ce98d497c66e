"""A place where a tensor can be read: its name, the letters of its axes, and the sequences that they run along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

# The sequence that a part of a model works on, by the first word of its name; all others work on the one text.
SEQUENCES = {
    "source_embedding": "source",
    "encoder": "source",
    "encoder_norm": "source",
    "target_embedding": "target",
    "decoder": "target",
    "decoder_norm": "target",
}
TEXT = "text"


@dataclass(frozen=True)
class Point:
    """A named tensor; `letters` has one for each axis, T runs along `rows`, and S along `columns`."""

    name: str
    letters: str
    rows: str
    columns: str

    def axis(self, letter: str) -> int | None:
        """The place of the axis with that letter, if there is one."""
        place = self.letters.find(letter)
        return None if place < 0 else place


# Takes the tensor at a point, and returns the one that the model goes on with.
Tap = Callable[[Point, Tensor], Tensor]


def sequence_of(name: str) -> str:
    """The sequence that the part of that name works on."""
    return SEQUENCES.get(name.partition(".")[0], TEXT)
