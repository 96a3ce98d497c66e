from hypothesis import given
from hypothesis import strategies as st

from heedful.tasks.translation.recent_answers import LONGEST_LINE, InputLine, LineAnswer, RecentAnswers

WORDS = [InputLine(text) for text in ("red", "green", "blue", "", "sea")] + [InputLine("sea", is_valid=False)]
LINES = st.lists(st.lists(st.sampled_from(WORDS), max_size=7), max_size=7)


def answer(line: InputLine) -> LineAnswer:
    return LineAnswer([line.text.upper()], [f"about {len(line.text)}, {line.is_valid}"])


@given(LINES, st.integers(0, 5), st.integers(1, 3))
def test_every_line_gets_its_answer_however_many_are_remembered(
    parts: list[list[InputLine]], most: int, late: int
) -> None:
    """Chunks are filled in order, some of them long after later ones were looked up."""
    recent, waiting, found = RecentAnswers(most), [], []

    def fill_oldest() -> None:
        chunk = waiting.pop(0)
        chunk.fill([answer(line) for line in chunk.new_lines])
        found.extend(chunk.answers)

    for lines in parts:
        waiting.append(recent.look_up(1, lines))
        if len(waiting) > late:
            fill_oldest()
    while waiting:
        fill_oldest()
    assert found == [answer(line) for lines in parts for line in lines]


def new_lines(recent: RecentAnswers, lines: list[str]) -> list[str]:
    return [line.text for line in recent.look_up(1, [InputLine(line) for line in lines]).new_lines]


def test_lines_are_new_once_as_long_as_they_are_remembered() -> None:
    recent = RecentAnswers(3)
    assert new_lines(recent, ["a", "", "a", "c"]) == ["a", "", "c"]
    assert new_lines(recent, ["a", "d", "a"]) == ["d"]  # the fourth, for which b is forgotten
    assert new_lines(recent, ["c", ""]) == [""]


def test_with_no_room_and_for_long_lines_nothing_is_remembered() -> None:
    assert new_lines(RecentAnswers(0), ["a", "a"]) == ["a", "a"]
    line = "x" * (LONGEST_LINE + 1)
    assert new_lines(RecentAnswers(3), [line, line, line[1:], line[1:]]) == [line, line, line[1:]]
