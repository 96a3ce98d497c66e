"""Files that are replaced in one step: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

TEMPORARY = "writing-"


def write_file(path: Path, text: str) -> None:
    """Replace a text file in one step."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    flush_to_disk(temporary)
    temporary.replace(path)


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Replace a safetensors file in one step."""
    from safetensors.torch import save_file

    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata)
    flush_to_disk(temporary)
    temporary.replace(path)


def whole_lines(path: Path) -> list[str]:
    """The lines of a file that is being written, or was when its writer was killed: without half a line at the end."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].split("\n")[:-1]


def flush_to_disk(path: Path) -> None:
    """Wait until a file's contents are on the disk: a rename must not get there before them."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
