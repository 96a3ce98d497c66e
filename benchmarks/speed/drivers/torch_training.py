"""torch.nn.Transformer with tied embeddings, sinusoids and torch's own label-smoothed loss."""

from __future__ import annotations

import math

import torch
from padded_batches import PAD, Batch
from torch import Tensor, nn
from training_loop import DROPOUT, LABEL_SMOOTHING, Size, Step, fused_adamw, ordinary_step, serve_training

LONGEST = 512


class Translation(nn.Module):
    """What the tutorials build around nn.Transformer."""

    positions: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size["width"]
        self.embedding = nn.Embedding(size["vocabulary"], width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.transformer = nn.Transformer(
            width, size["heads"], size["layers"], size["layers"], size["inner"], DROPOUT, batch_first=True
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # the others have none there, and the fast kernel refuses it
        self.dropout = nn.Dropout(DROPOUT)
        angles = torch.arange(LONGEST)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1))

    def embed(self, ids_BT: Tensor) -> Tensor:
        """Scaled embeddings with positions."""
        x_BTD = self.embedding(ids_BT) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x_BTD + self.positions[: ids_BT.shape[1]])

    def forward(self, batch: Batch) -> Tensor:
        """The logits."""
        padding = batch.source_BS == PAD
        future = nn.Transformer.generate_square_subsequent_mask(batch.target_BT.shape[1])
        hidden_BTD = self.transformer(
            self.embed(batch.source_BS),
            self.embed(batch.target_BT),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return nn.functional.linear(hidden_BTD, self.embedding.weight)


def make_step(size: Size) -> Step:
    """A model of that size, and a step of it."""
    model = Translation(size)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=LABEL_SMOOTHING)

    def loss(batch: Batch) -> Tensor:
        return criterion(model(batch).flatten(0, 1), batch.labels_BT.flatten())

    return ordinary_step(model, loss, fused_adamw(model))


if __name__ == "__main__":
    serve_training(make_step, None)
