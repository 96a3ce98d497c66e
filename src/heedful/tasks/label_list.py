"""Names of labels in a line of text."""

from collections.abc import Iterable


def label_list(labels: Iterable[str]) -> str:
    """Labels with commas between them, and quotation marks around those that hold a comma themselves."""
    return ", ".join(repr(label) if "," in label else label for label in labels)
