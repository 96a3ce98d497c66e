"""A heedful model folder, read without heedful: its sizes, and its tensors by the names that peers use for parts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

# Longer than any sentence that is translated here.
LONGEST = 512


class Weights:
    """The tensors of an encoder-decoder with one table, sinusoidal positions and stacks of equal sizes."""

    def __init__(self, folder: str) -> None:
        self.settings: dict[str, Any] = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))["model"]
        self.tensors = load_file(Path(folder, "model.safetensors"))
        stacks = [self.settings[part] for part in ("encoder", "decoder")]
        kinds = {(each["norm"], each["feed_forward"]["activation"], each["attention"]["num_heads"]) for each in stacks}
        assert len(kinds) == 1 and self.settings["positions"] == "sinusoidal" and self.settings["shared_embeddings"]
        self.norm, self.activation, _ = kinds.pop()
        self.epsilon: float = stacks[0]["norm_epsilon"]
        self.size = {
            "width": self.settings["width"],
            "layers": stacks[0]["num_layers"],
            "heads": stacks[0]["attention"]["num_heads"],
            "inner": stacks[0]["feed_forward"]["inner_width"] or 4 * self.settings["width"],
            "vocabulary": self.settings["vocabulary_size"],
        }

    @property
    def table_VD(self) -> Tensor:
        """The embeddings, which are the output layer too."""
        return self.tensors["source_embedding.table.weight"]

    @property
    def output_bias(self) -> Tensor:
        """That of the output layer; zeros if it has none."""
        return self.tensors.get("output.bias", torch.zeros(self.size["vocabulary"]))

    def layer(self, place: str) -> dict[str, Tensor]:
        """The weight and the bias of a linear layer or a norm."""
        return {kind: self.tensors[f"{place}.{kind}"] for kind in ("weight", "bias")}

    def cut(self, place: str, parts: int) -> list[dict[str, Tensor]]:
        """The parts of a linear layer that several are packed in."""
        packed = {kind: tensor.chunk(parts) for kind, tensor in self.layer(place).items()}
        return [{kind: tensors[number] for kind, tensors in packed.items()} for number in range(parts)]

    def attention(self, block: str, kind: str) -> dict[str, dict[str, Tensor]]:
        """Query, key, value and output of the self-attention ("attention") or of the cross-attention of a block."""
        place = f"{block}.{kind}"
        if kind == "attention":
            query, key, value = self.cut(f"{place}.query_key_value_projection", 3)
        else:
            query = self.layer(f"{place}.query_projection")
            key, value = self.cut(f"{place}.key_value_projection", 2)
        return {"query": query, "key": key, "value": value, "output": self.layer(f"{place}.output_projection")}

    def positions(self) -> Tensor:
        """The paper's sines and cosines."""
        width = self.size["width"]
        rates = torch.exp(torch.arange(0, width, 2).double() * (-math.log(1e4) / width))
        angles = torch.arange(LONGEST).double()[:, None] * rates
        return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()


def copy_layer(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a linear layer or a norm its weight and bias."""
    module.weight.copy_(tensors["weight"])  # type: ignore[operator]
    module.bias.copy_(tensors["bias"])  # type: ignore[operator]
