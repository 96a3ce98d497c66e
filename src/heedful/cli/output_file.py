"""A file that a command writes, by the name that its user gave."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.errors import UserError


def output_path(name: str, option: str, example: str) -> Path:
    """The path of a file to be written; the name of a folder is a UserError, before anything is computed."""
    if not name:
        raise UserError(f"{option} is empty: name a file, such as {example}")
    if name.endswith(("/", os.sep)) or Path(name).is_dir():
        raise UserError(f"{option} {name} is the name of a folder: name a file, such as {Path(name) / example}")
    return Path(name)
