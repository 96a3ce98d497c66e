"""A warning where so many labels occur that they look like the texts themselves."""

from heedful.text.row_layout import RowLayout

# Of fewer, most may have a label of their own.
FEWEST_LABELLED = 20
# More labels than this share of what is labelled are not labels.
LARGEST_SHARE = 0.5


def warning_of_swapped_columns(labels: int, labelled: int, unit: str, layout: RowLayout) -> list[str]:
    """A line that asks whether the columns of a file are swapped, if it has that many labels for its texts or words."""
    if labelled < FEWEST_LABELLED or labels <= LARGEST_SHARE * labelled or layout.takes_rest:
        return []
    columns = layout.present
    places = [place if isinstance(place, str) else str(place + 1) for place in (columns[-1], *columns[:-1])]
    # A label comes before its texts, and a tag after its word.
    name, place = ("label", places[0]) if unit == "text" else ("tag", places[-1])
    return [
        f"warning: {labels:,} {name}s for {labelled:,} {unit}s: are the columns swapped? --columns {','.join(places)} "
        f"reads {'column ' if place.isdecimal() else ''}{place} as the {name}"
    ]
