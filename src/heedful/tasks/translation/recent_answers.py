"""Lines that are repeated are not translated again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

# Longer lines are hardly ever repeated, and would take the memory of many.
LONGEST_LINE = 1000


class InputLine(NamedTuple):
    """A line to be translated, and whether its bytes were valid UTF-8; invalid ones are read as U+FFFD.

    `prefix` is what its translation must begin with.
    """

    text: str
    is_valid: bool = True
    prefix: str = ""


@dataclass
class LineAnswer:
    """The output lines for a line of input, and remarks on it: empty until it is translated."""

    lines: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Chunk:
    """Some lines of input: the number of the first, the answers to all, and the lines to be translated."""

    first: int
    answers: list[LineAnswer]
    new_lines: list[InputLine]
    new_answers: list[LineAnswer]

    def fill(self, found: list[LineAnswer]) -> None:
        """Fill in what was found for the new lines."""
        for answer, each in zip(self.new_answers, found, strict=True):
            answer.lines, answer.remarks = each.lines, each.remarks


class RecentAnswers:
    """The answers to the latest lines, up to `most` distinct ones."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._answers: OrderedDict[InputLine, LineAnswer] = OrderedDict()

    def look_up(self, first: int, lines: list[InputLine]) -> Chunk:
        """Lines with their answers; answers to known lines are filled once all earlier chunks are."""
        chunk = Chunk(first, [], [], [])
        for line in lines:
            answer = self._answers.get(line)
            if answer is None:
                answer = LineAnswer()
                chunk.new_lines.append(line)
                chunk.new_answers.append(answer)
            chunk.answers.append(answer)
            self._remember(line, answer)
        return chunk

    def _remember(self, line: InputLine, answer: LineAnswer) -> None:
        if len(line.text) <= LONGEST_LINE:
            self._answers[line] = answer
            self._answers.move_to_end(line)
        if len(self._answers) > self.most:
            self._answers.popitem(last=False)
