"""A file that a command writes, under the name that the user gave."""

from __future__ import annotations

import os
import re
from pathlib import Path

from heedful.errors import UserError
from heedful.files import is_open_file

MODEL_FILES = re.compile(r"config\.json|tokenizer\.json|.*\.safetensors(\.index\.json)?")


def output_path(name: str, option: str, example: str) -> Path:
    """The path of a file to be written; a folder, or a file of a model, is a UserError before anything is computed."""
    if not name:
        raise UserError(f"{option} is empty: name a file, such as {example}")
    if name == "-":
        raise UserError(f"{option} is -, which is not the name of a file: name one, such as {example}")
    if name.endswith(("/", os.sep)) or Path(name).is_dir():
        raise UserError(f"{option} {name} is the name of a folder: name a file, such as {Path(name) / example}")
    if Path(name).is_file() and is_open_file(Path(name)):  # replacing it would lose what others write to it
        raise UserError(f"{option} {name} stands for a file that is open already: name the file itself")
    place = Path(os.path.realpath(name))
    if MODEL_FILES.fullmatch(place.name) and (place.parent / "config.json").is_file():
        raise UserError(f"{option} {name} would replace a file of the model in {place.parent}: choose another name")
    return Path(name)
