"""Models trained by the command itself must learn two tasks, and show in their attention how they do it."""

from pathlib import Path

import pytest

import heedful


def right_share(model: Path, lines: list[str], answers: list[str]) -> tuple[float, float]:
    """The share of lines that come out right, and of target words that are aligned with their source word."""
    translations = heedful.load(model).translate(lines, beam=1, alignment=True)
    right = sum(each.text == answer for each, answer in zip(translations, answers, strict=True))
    backwards = answers != lines
    pairs = [
        (source == (count - 1 - target if backwards else target))
        for each, count in ((each, len(line.split())) for each, line in zip(translations, lines, strict=True))
        for source, target in each.alignment
    ]
    return right / len(lines), sum(pairs) / len(pairs)


@pytest.mark.parametrize(
    "task",
    ["copy", pytest.param("reverse", marks=pytest.mark.slow)],
)
def test_the_task_and_its_alignment_are_learned(task: str, request: pytest.FixtureRequest, make_sentences) -> None:
    model = request.getfixturevalue(f"{task}_model")
    lines = make_sentences(300, seed=3)
    answers = [" ".join(reversed(line.split())) for line in lines] if task == "reverse" else lines
    right, aligned = right_share(model, lines, answers)
    assert right >= 0.99
    assert aligned >= 0.99
