"""Counts the lines of fastText files that have several labels, of which a classifier can learn only one."""

from heedful.errors import UserError

MARK = "__label__"
# A greater share of such lines means that the texts of the file have several labels.
MOST_SEVERAL = 0.01


class LabelCensus:
    """Counts the lines of a file, and refuses it if too many have several labels."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = self._several = 0
        self._first = ""

    def is_single(self, label: str, text: str, line: int) -> bool:
        """Whether the label is the only one on its line."""
        self._lines += 1
        if not label.startswith(MARK) or not any(word.startswith(MARK) for word in text.split()):
            return True
        self._several += 1
        self._first = self._first or f"line {line}: {f'{label} {text}'[:80]!r}"
        return False

    def finish(self) -> None:
        """Raise a UserError if there were too many."""
        if self._several > MOST_SEVERAL * self._lines:
            raise UserError(
                f"{self._name}: {self._several:,} of {self._lines:,} lines have more than one {MARK}, the first "
                f"being {self._first}: a classifier learns one label per text; leave one on each line"
            )
