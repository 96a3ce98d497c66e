"""Courses of training that are cut short: what a claim finds is then of no worth, but all of it runs."""

import pytest

STEPS, SECONDS = 3, 0.15


@pytest.fixture
def short_courses(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.claims.learning.course import Course

    whole = Course.__init__

    def short(self: Course, steps: int, *arguments: float, seconds: float | None = None, **named: float) -> None:
        whole(self, min(steps, STEPS), *arguments, seconds=None if seconds is None else SECONDS, **named)

    monkeypatch.setattr(Course, "__init__", short)
