"""x-transformers' encoder-decoder, with its fast attention and its own loss."""

from __future__ import annotations

import torch
from padded_batches import PAD, Batch
from torch import Tensor
from training_loop import DROPOUT, Size, Step, fused_adamw, ordinary_step, serve_training
from x_transformers import XTransformer

LONGEST = 512


def make_step(size: Size) -> Step:
    """A model of that size, and a step of it."""
    stack = {
        "num_tokens": size["vocabulary"],
        "max_seq_len": LONGEST,
        "depth": size["layers"],
        "heads": size["heads"],
        "attn_dim_head": size["width"] // size["heads"],
        "attn_flash": True,
        "ff_mult": size["inner"] / size["width"],
        "ff_dropout": DROPOUT,
        "emb_dropout": DROPOUT,
    }
    sides = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in stack.items()}
    model = XTransformer(dim=size["width"], tie_token_emb=True, ignore_index=PAD, pad_value=PAD, **sides)

    def loss(batch: Batch) -> Tensor:
        # It cuts inputs and labels out of one sequence.
        whole_BT = torch.cat([batch.target_BT[:, :1], batch.labels_BT], dim=1)
        return model(batch.source_BS, whole_BT, mask=batch.source_BS != PAD)

    return ordinary_step(model, loss, fused_adamw(model))


if __name__ == "__main__":
    serve_training(make_step, None, "x-transformers")
