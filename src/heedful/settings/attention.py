"""The settings of multi-head attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.config import require
from heedful.errors import UserError


@dataclass(frozen=True)
class AttentionConfig:
    """The settings of multi-head attention; widths are per head, and default to model width / heads.

    With fewer key/value heads than heads, several heads share theirs (Ainslie et al., 2023).
    """

    num_heads: int = 8
    num_key_value_heads: int | None = None
    key_width: int | None = None
    value_width: int | None = None
    scoring: Literal["dot", "additive"] = "dot"
    scaled: bool = True
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require(self.num_heads, "num_heads", 1)
        shared = self.num_key_value_heads or self.num_heads
        if shared < 1 or self.num_heads % shared:
            raise UserError(f"num_key_value_heads is {shared}, but must divide num_heads, which is {self.num_heads}")
        require(self.key_width or 1, "key_width", 1)
        require(self.value_width or 1, "value_width", 1)
        require(self.dropout, "attention dropout", 0, 1)

    def width_per_head(self, width: int) -> int:
        """The width of a query or key, in a model of this width."""
        if not self.key_width and width < self.num_heads:
            raise UserError(f"num_heads is {self.num_heads}, more than the width of the model, which is {width}")
        return self.key_width or width // self.num_heads
