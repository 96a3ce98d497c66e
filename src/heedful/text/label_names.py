"""Which names of labels can be printed: answers are lines, with labels in their columns."""

from collections.abc import Sequence

from heedful.config import shown
from heedful.errors import UserError
from heedful.text.cleaning import has_control_characters


def check_label_names(names: Sequence[str], where: str, *, as_words: bool = False) -> None:
    """Raise a UserError that says where the first unusable name is; `as_words`, they must hold no spaces either."""
    for number, name in enumerate(names):
        rule = ""
        if not name.strip() or has_control_characters(name):
            rule = "a label must not be blank, nor hold line breaks, tabs or other control characters"
        elif as_words and name.split() != [name]:
            rule = "tags are printed with spaces between them, so that a tag must not hold white space"
        if rule:
            raise UserError(f"{where}: label {number} is {shown(name)}: {rule}; rename it")
