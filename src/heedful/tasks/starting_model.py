"""The model that training starts from, where it does not start from random weights."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from torch import nn

from heedful.config import to_dict
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, check_model_folder, check_weights, load_model_folder, load_tokenizer
from heedful.models.weight_transfer import transfer_weights
from heedful.text.tokenizer import Tokenizer
from heedful.weights_index import WEIGHTS, weights_files

# Weights that already know something should change slowly. To be divided by the width: 5e-5 for BERT base.
FINE_TUNING_RATE = 0.04
WARM_UP_SHARE = 0.05
_BLOCK = 1 << 20


class StartingModel:
    """The model folder that a run starts from."""

    def __init__(self, folder: str, families: Sequence[str]) -> None:
        self.folder = Path(folder)
        self.config: ModelConfig = check_model_folder(self.folder)
        if self.config.family not in families:
            raise UserError(
                f"{folder} holds a model of the family {self.config.family!r} (for {self.config.task}): this job can "
                f"start from one of {' or '.join(families)}"
            )

    def learning_rate(self, times_width: float) -> float:
        """A rate for weights that are not random; it is smaller for a wider model."""
        return round(times_width / self.config.model.width, 7)

    def copy_to(self, model: nn.Module, *, with_head: bool = True, may_have_more: bool = False) -> None:
        """Give a fresh model these weights (see `transfer_weights`)."""
        try:
            transfer_weights(
                load_model_folder(self.folder).network, model, with_head=with_head, may_have_more=may_have_more
            )
        except UserError as error:
            raise UserError(f"cannot start from {self.folder}: {error}") from None


class StartingTextModel(StartingModel):
    """A model folder to start from, whose vocabulary is taken over too."""

    def __init__(self, folder: str, families: Sequence[str]) -> None:
        super().__init__(folder, families)
        if not self.config.has_tokenizer:
            raise UserError(f"{folder} has no tokenizer.json: text cannot be given to its model")

    def tokenizer(self) -> Tokenizer:
        """Its vocabulary, which the new model takes over."""
        return load_tokenizer(self.folder, self.config, check_weights(self.folder).metadata)

    def settings(self) -> dict[str, Any]:
        """Its settings, without an encoder's head, and a schedule for weights that are not random."""
        model = to_dict(self.config.model)
        for name in ("head", "num_labels"):
            model.pop(name, None)
        rate = self.learning_rate(FINE_TUNING_RATE)
        schedule = {"kind": "decay", "learning_rate": rate, "warmup_share": WARM_UP_SHARE}
        return {"model": model, "training": {"schedule": schedule}}

    def keeps_head(self, head: str | None) -> bool:
        """Whether its head is kept; labels may mean something else in other data, tokens do not."""
        return head is None or head == self.config.model.head == "masked"

    def message(self, head: str | None = None) -> str:
        """What is taken over, in words."""
        which = (
            "all weights" if self.keeps_head(head) else "all weights but those of the head, which starts from scratch"
        )
        return f"starting from {self.folder}: its tokenizer and {which}"

    def copy_for(self, model: nn.Module, head: str | None = None) -> None:
        """Give a fresh model these weights; without a `head` of an encoder, all of them must fit."""
        self.copy_to(model, with_head=self.keeps_head(head), may_have_more=head is not None)


def content_digest(folder: Path) -> str:
    """A key of the weights and the vocabulary in a model folder, wherever the folder is."""
    digest = blake2b(digest_size=16)
    # The names of shards change with every save.
    named = [(WEIGHTS, file) for file in weights_files(folder)] + [("tokenizer.json", folder / "tokenizer.json")]
    for name, file in named:
        if file.is_file():
            digest.update(name.encode())
            with file.open("rb") as content:
                while block := content.read(_BLOCK):
                    digest.update(block)
    return digest.hexdigest()
