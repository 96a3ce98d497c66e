"""The scores of labels as tables that a person can read, however many labels there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.tasks.classification_metrics import EntityEvaluation, LabelEvaluation, NamedScores, Scores

# With more labels than these, only the worst are listed, or no matrix is drawn.
MOST_ROWS = 50
MOST_COLUMNS = 20
WIDEST_NAME = 30


def label_lines(result: LabelEvaluation) -> list[str]:
    """The scores of each label, averages, entities, and which label was taken for which."""
    averages = [("macro average", result.macro_average), ("weighted average", result.weighted_average)]
    lines = ["", *_score_table("label", result.per_label, averages)]
    if result.entities is not None:
        lines += ["", *_entity_lines(result.entities)]
    if result.unknown:
        unknown = sum(each.count for each in result.unknown)
        lines += ["", f"labels unknown to the model, counted as wrong: {unknown:,}"]
    return lines + confusion_lines(result)


def confusion_lines(result: LabelEvaluation) -> list[str]:
    """Which label was taken for which: the full matrix if there are few, else the pairs mixed up most often."""
    if result.confusion is not None and len(result.labels) <= MOST_COLUMNS:
        names = [label[:12] for label in result.labels]
        width = max(len(name) for name in [*names, f"{result.count:,}"]) + 2
        head = " " * width + "".join(f"{name:>{width}}" for name in names)
        rows = zip(names, result.confusion, strict=True)
        table = [f"{name:>{width}}" + "".join(f"{count:>{width},}" for count in row) for name, row in rows]
        return ["", "labels (rows) and what they were taken for (columns):", head, *table]
    if not result.most_confused:
        return []
    width = max(len(each.label[:WIDEST_NAME]) for each in result.most_confused)
    return [
        "",
        "labels that were taken for others most often:",
        *(
            f"{each.count:>7,}  {each.label[:WIDEST_NAME]:<{width}}  as {each.taken_for[:WIDEST_NAME]}"
            for each in result.most_confused
        ),
    ]


def _entity_lines(result: EntityEvaluation) -> list[str]:
    averages = [
        ("all entities", result.overall),
        ("macro average", result.macro_average),
        ("weighted average", result.weighted_average),
    ]
    return _score_table("entities", result.per_type, averages)


def _score_table(what: str, rows: Sequence[NamedScores], averages: Sequence[tuple[str, Scores]]) -> list[str]:
    shown, note = list(rows), []
    if len(rows) > MOST_ROWS:
        shown = sorted(rows, key=lambda each: each.f1)[:MOST_ROWS]
        note = [f"({MOST_ROWS} of {len(rows):,}, those of the lowest F1; --json gives all)"]
    named = [*((each.name[:WIDEST_NAME], each) for each in shown), *averages]
    width = max(len(name) for name, _ in [*named, (what, None)])
    head = f"{what:<{width}}  precision  recall      F1    count"
    table = [f"{name:<{width}}  {s.precision:>9.4f}  {s.recall:.4f}  {s.f1:.4f}  {s.count:>7,}" for name, s in named]
    return [head, *table, *note]
