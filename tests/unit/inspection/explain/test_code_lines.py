"""The lines of code that the page shows compute something: they are no docstrings and no comments."""

import io
import textwrap
import tokenize
from inspect import getsourcelines

from heedful.inspection.explain.attention_steps import ATTENTION, CROSS, RELATIVE
from heedful.inspection.explain.code_lines import code_alone
from heedful.inspection.explain.steps import AFTER_NORM, AFTER_SUM, AROUND, EMBEDDING, FEED_FORWARD, RESIDUAL

SOURCE = """\
    def three(self, number):
        \'\'\'Give 3 * number.

        That is 3 * number.
        \'\'\'
        # 3 * number is an odd multiple.
        return 3 * number  # not 4 * number
"""


def test_docstrings_and_comments_are_left_out() -> None:
    code = code_alone(SOURCE.splitlines(keepends=True))
    assert [line.strip() for line in code] == ["def three(self, number):", "", "", "", "", "", "return 3 * number"]


def test_each_step_shows_a_line_that_computes() -> None:
    tables = (EMBEDDING, RESIDUAL, FEED_FORWARD, AROUND, ATTENTION, CROSS, RELATIVE)
    steps = [each for table in tables for each in table.values() if each.place] + [AFTER_NORM, AFTER_SUM]
    assert len(steps) > 30
    for step in steps:
        lines, first = getsourcelines(step.place)
        text = textwrap.dedent("".join(lines))
        computing = {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.NAME
        }
        assert step.code.line - first + 1 in computing, (step.title, step.code)
