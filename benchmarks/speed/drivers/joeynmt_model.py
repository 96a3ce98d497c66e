"""A JoeyNMT model for ids that are numbered as heedful's."""

from __future__ import annotations

from typing import Any

from joeynmt.model import build_model
from padded_batches import END, PAD, START


class Vocabulary:
    """What JoeyNMT's model asks of a vocabulary; no text goes through it."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, START, END, PAD, None
    specials: tuple[str, ...] = ()
    lang_tags: tuple[str, ...] = ()

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def make_model(size: dict[str, int], norm: str, activation: str, dropout: float) -> Any:
    """A Transformer with one table for both sides and for the output."""
    width = size["width"]
    stack = {
        "type": "transformer",
        "num_layers": size["layers"],
        "num_heads": size["heads"],
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": dropout},
        "hidden_size": width,
        "ff_size": size["inner"],
        "dropout": dropout,
        "layer_norm": norm,
        "activation": activation,
    }
    vocabulary = Vocabulary(size["vocabulary"])
    settings = {"tied_embeddings": True, "tied_softmax": True, "initializer": "xavier_uniform"}
    return build_model({**settings, "encoder": stack, "decoder": {**stack}}, vocabulary, vocabulary)
