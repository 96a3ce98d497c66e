"""JoeyNMT's training step, with the batches of its own sampler."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from joeynmt.batch import Batch as JoeyBatch
from joeynmt.builders import build_optimizer
from joeynmt_model import make_model
from padded_batches import END, PAD, Batch
from torch import nn
from training_loop import DROPOUT, LABEL_SMOOTHING, LEARNING_RATE, Size, Step, serve_training


def make_step(size: Size) -> Step:
    """What its TrainManager does with a batch."""
    model = make_model(size, "post", "relu", DROPOUT)
    model.loss_function = ("crossentropy", LABEL_SMOOTHING)
    settings = {"optimizer": "adam", "learning_rate": LEARNING_RATE, "adam_betas": (0.9, 0.98)}
    optimizer = build_optimizer(settings, model.parameters())
    model.train()

    def step(batch: Batch) -> None:
        whole = torch.cat([batch.target_BT[:, :1], batch.labels_BT], dim=1)
        lengths, indices = batch.source_lengths_B, torch.arange(len(whole))
        theirs = JoeyBatch(
            batch.source_BS, lengths, None, whole, None, indices, torch.device("cpu"), PAD, END, is_train=True
        )
        theirs.sort_by_src_length()
        loss, _, _, _ = model(return_type="loss", **vars(theirs))
        theirs.normalize(loss, normalization="tokens").backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()

    return step


def by_tokens(source_lengths: Any, target_lengths: Any, sentences: int, batches: int) -> list[Any]:
    """What its TokenBatchSampler does: random pairs, until the longest times their number reaches a size."""
    longest = np.maximum(source_lengths, target_lengths)
    size = sentences * float(np.mean(longest))
    found: list[Any] = []
    batch: list[int] = []
    for index in np.random.default_rng(3).permutation(len(longest)):
        batch.append(int(index))
        if len(batch) * max(longest[i] for i in batch) >= size:
            found.append(np.array(batch))
            batch = []
            if len(found) == batches:
                break
    return found


if __name__ == "__main__":
    serve_training(make_step, by_tokens, "joeynmt")
