"""A first row that looks like a header and is read as data, because neither its names nor the user say what it is."""

from heedful.text.quoting_census import OnWarning
from heedful.text.row_layout import RowLayout, shown_cells


def warn_of_unread_header(name: str, layout: RowLayout, on_warning: OnWarning | None) -> None:
    """Say that the first row of a file looks like a header, if it does and is read like the others."""
    if on_warning and layout.unread_header:
        on_warning(
            f"warning: {name}: its first row, {shown_cells(layout.unread_header)}, looks like a header, but is read "
            "like the others: give --header if it is one, or --no-header if it is not"
        )
