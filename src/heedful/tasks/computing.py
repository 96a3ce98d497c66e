"""What a model computes on and with, as far as the user can choose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.config import require_whole
from heedful.decoding.options import LARGEST_BATCH

Engine = Literal["auto", "core", "torch"]
Precision = Literal["fp32", "int8"]


@dataclass(frozen=True)
class Computing:
    """A device, an engine and a precision; by default the best available."""

    device: str = "auto"
    engine: Engine = "auto"
    precision: Precision = "fp32"


def check_batch_size(batch_size: object, name: str = "batch_size") -> None:
    """Raise a UserError for a batch size that is not a positive whole number, or is absurdly large."""
    require_whole(batch_size, name, 1, LARGEST_BATCH)
