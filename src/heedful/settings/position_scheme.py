"""What all position schemes have in common, as far as settings go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Tables of positions have lengths that are multiples of this; models are stored with them.
TABLE_MULTIPLE, SHORTEST_TABLE = 8, 16


def table_length(length: int) -> int:
    """The number of positions in the table of a model for sequences of up to `length`."""
    return max(SHORTEST_TABLE, -(-length // TABLE_MULTIPLE) * TABLE_MULTIPLE)


@dataclass(frozen=True)
class PositionConfig:
    """The settings of a position scheme that has only its name; a scheme with more has its own subclass."""

    scheme: str

    def __str__(self) -> str:
        return self.scheme


@dataclass(frozen=True)
class PositionSizes:
    """The sizes of the stack that a scheme serves: widths, the longest sequence, and heads.

    In a decoder (`causal`) no key comes after its query.
    """

    width: int
    head_width: int
    length: int
    num_heads: int = 1
    causal: bool = False


def _no_parameters(sizes: PositionSizes, config: Any) -> int:
    return 0


@dataclass(frozen=True)
class SchemeTraits:
    """What is known about a position scheme without building it.

    Sequences may be longer than the model's if the scheme `extends`: it then grows as needed. One that
    `computes_table` has a row for every position, which settings alone can make very large.
    """

    config_class: type[PositionConfig] = PositionConfig
    extends: bool = True
    computes_table: bool = False
    adds_bias: bool = False
    num_parameters: Callable[[PositionSizes, Any], int] = _no_parameters
