"""What a model computes on and with, as far as a user has a say in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Engine = Literal["auto", "core", "torch"]
Precision = Literal["fp32", "int8"]


@dataclass(frozen=True)
class Computing:
    """A device, an engine and a precision; by default the best that there is."""

    device: str = "auto"
    engine: Engine = "auto"
    precision: Precision = "fp32"
