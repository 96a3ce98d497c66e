"""The `repr` of a pipeline."""

from __future__ import annotations

from typing import Any

from heedful.core.model import CoreModel
from heedful.model_folder import ModelConfig
from heedful.models.parameter_count import counted


class Described:
    """A loaded model whose `repr` says in one line what it is."""

    model: Any
    config: ModelConfig
    name: str

    def __repr__(self) -> str:
        summary = self.config.model.summary()
        if isinstance(self.model, CoreModel):
            parameters, where = self.model.num_parameters, "heedful's engine"
        else:
            parameters, where = counted(self.model), str(self.model.device)
        return f"{type(self).__name__}({self.name!r}: {summary}, {parameters:,} parameters, on {where})"
