"""Warns when there are so many labels that they look like the texts themselves, or like row numbers."""

from collections.abc import Sequence

from heedful.errors import UserError
from heedful.tasks.labelling.files import LabelledFiles
from heedful.text.column_kinds import are_numbers, by_column, first_rows, likely_columns

# Among fewer texts or words, most may well have a label of their own.
FEWEST_LABELLED = 20
# If there are more labels than this share of what is labelled, they are hardly labels.
LARGEST_SHARE = 0.5
# If more than this share of what is labelled has a number of its own as label, nothing can be learned.
MOST_NUMBERS = 0.9


def warning_of_swapped_columns(labels: Sequence[str], labelled: int, corpus: LabelledFiles) -> list[str]:
    """A line that asks whether the columns of a file are swapped, if it has too many labels for its texts or words.

    Labels that are nearly all distinct numbers are a UserError.
    """
    if labelled < FEWEST_LABELLED or len(labels) <= LARGEST_SHARE * labelled:
        return []
    name = _label_name(corpus)
    counted = f"{len(labels):,} {name}s for {labelled:,} {corpus.unit}s"
    if sum(are_numbers([label]) for label in labels) > MOST_NUMBERS * labelled:
        raise UserError(
            f"{corpus.files[0].shown_name}: {counted}, nearly all of them numbers that occur once, as ids do: "
            f"nothing can be learned from them; {_advice(name, corpus)}"
        )
    if corpus.layouts[0].takes_rest:
        return []
    return [f"warning: {swapped_columns(counted, corpus)}"]


def swapped_columns(counted: str, corpus: LabelledFiles) -> str:
    """The question whether the columns are swapped, after the numbers that raise it and before what to do."""
    return f"{counted}: are the columns swapped? {_advice(_label_name(corpus), corpus)}"


def _label_name(corpus: LabelledFiles) -> str:
    return "label" if corpus.unit == "text" else "tag"


def _advice(name: str, corpus: LabelledFiles) -> str:
    """Which columns to choose, judging by the first rows."""
    layout = corpus.layouts[0]
    columns = by_column(first_rows(corpus.files[0], layout)[1:])  # the first one may be a header
    # In JSON objects, only the columns that are read have a place.
    likely = [
        layout.columns[place] if layout.kind == "json" else place for place in likely_columns(columns, corpus.wanted)
    ]
    if not likely or tuple(likely) == layout.present:
        return f"--columns says which column is the {name}"
    shown = [place if isinstance(place, str) else str(place + 1) for place in likely]
    chosen = shown[0 if name == "label" else -1]
    return f"--columns {','.join(shown)} reads {'column ' if chosen.isdecimal() else ''}{chosen} as the {name}"
