"""How a pipeline shows itself."""

from __future__ import annotations

from typing import Any

from heedful.model_folder import ModelConfig


class Described:
    """A loaded model whose `repr` says in one line what it is."""

    model: Any
    config: ModelConfig
    name: str

    def __repr__(self) -> str:
        parameters = sum(each.numel() for each in self.model.parameters())
        summary = self.config.model.summary()
        return f"{type(self).__name__}({self.name!r}: {summary}, {parameters:,} parameters, on {self.model.device})"
