"""What counts as one document of a corpus: each file, or each line."""

from typing import Literal

DocumentUnit = Literal["file", "line"]
