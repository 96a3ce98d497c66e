"""Learning that starts from the weights of an encoder that is already there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from heedful.config import to_dict
from heedful.data.tokenizer import Tokenizer
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, check_model_folder, load_model_folder, load_tokenizer
from heedful.models.weights_file import load_parameters, parameter_tensors

# The parameters of the head, by the beginning of their names.
HEAD = ("transform.", "output.")
POOLER = "pooler."
# Weights that know something already are to change slowly; times the width: 5e-5 for BERT base.
FINE_TUNING_RATE = 0.04


class StartingModel:
    """The model folder that a run starts from."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.config: ModelConfig = check_model_folder(self.folder)
        if self.config.family != "encoder_only":
            raise UserError(f"{folder} holds a model of the family {self.config.family!r}, and not of encoder_only")
        if not self.config.has_tokenizer:
            raise UserError(f"{folder} has no tokenizer.json: text cannot be given to its model")

    def tokenizer(self) -> Tokenizer:
        """Its vocabulary, which the new model takes over."""
        return load_tokenizer(self.folder, self.config)

    def settings(self) -> dict[str, Any]:
        """Its settings without the head, and a learning rate for weights that are not random."""
        model = to_dict(self.config.model)
        del model["head"], model["num_labels"]
        rate = round(FINE_TUNING_RATE / self.config.model.width, 7)
        return {"model": model, "training": {"schedule": {"kind": "decay", "learning_rate": rate}}}

    def keeps_head(self, head: str) -> bool:
        """Whether its head goes on; labels may mean something else in other data, tokens do not."""
        return head == self.config.model.head == "masked"

    def message(self, head: str) -> str:
        """What is taken over, in words."""
        which = "all weights" if self.keeps_head(head) else "all weights but those of the head, which starts afresh"
        return f"starting from {self.folder}: its tokenizer and {which}"

    def copy_to(self, model: nn.Module, head: str) -> None:
        """Give a fresh model with that head these weights."""
        found = parameter_tensors(load_model_folder(self.folder).network)
        tensors = parameter_tensors(model)
        kept = (POOLER,) if self.keeps_head(head) else (POOLER, *HEAD)
        for name, tensor in found.items():
            if name == "positions.table" and name in tensors:
                tensor = tensor[: len(tensors[name])]  # a model for shorter texts has the first positions
            if not name.startswith(kept) or (name.startswith(POOLER) and name in tensors):
                tensors[name] = tensor
        try:
            load_parameters(model, tensors)
        except UserError as error:
            raise UserError(f"{self.folder}: {error}") from None


def starting_model(folder: str | None) -> StartingModel | None:
    """The model of a folder that was named."""
    return StartingModel(folder) if folder is not None else None
