"""heedful's training step, as its training loop takes it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from padded_batches import Batch
from training_loop import DROPOUT, LABEL_SMOOTHING, LEARNING_RATE, Size, Step, serve_training

from heedful.machine.memory import keep_freed_memory
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.prepared.batches import BucketedBatches
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.task import TranslationBatch, translation_loss
from heedful.text.special_tokens import OWN_TOKENS
from heedful.training.averaging import MovingAverage
from heedful.training.gradients import ParallelGradients
from heedful.training.optimizer import OptimizerConfig, clip_gradients, make_optimizer
from heedful.training.parts import Parts
from heedful.training.step import TrainingStep


def build(size: Size) -> EncoderDecoder:
    """A model of that size."""
    stack = StackConfig(
        num_layers=size["layers"],
        dropout=DROPOUT,
        attention=AttentionConfig(num_heads=size["heads"]),
        feed_forward=FeedForwardConfig(inner_width=size["inner"]),
    )
    return EncoderDecoder(EncoderDecoderConfig(size["vocabulary"], size["width"], encoder=stack, decoder=stack))


def make_step(size: Size) -> Step:
    """What `heedful.training.loop` does between two validations, with a worker for each thread."""
    keep_freed_memory()
    workers = torch.get_num_threads()
    torch.set_num_threads(1)
    model = build(size).train()
    loss = partial(translation_loss, label_smoothing=LABEL_SMOOTHING)
    gradients: ParallelGradients[TranslationBatch] = ParallelGradients(TrainingStep(model, loss), workers, 1)
    settings = OptimizerConfig()
    optimizer = make_optimizer(model, settings)
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE
    average = MovingAverage(model, 0.999)
    taken = 0

    def step(batch: Batch) -> None:
        nonlocal taken
        taken += 1
        ours = TranslationBatch(
            batch.source_BS,
            batch.source_lengths_B,
            batch.target_BT,
            batch.labels_BT,
            batch.target_tokens,
            batch.source_tokens + batch.target_tokens,
            OWN_TOKENS,
        )
        parts = [ours]
        while len(parts) < min(workers, len(ours.source_BS)):
            parts = [half for part in parts for half in part.halves()]
        numbers = list(range(len(parts)))
        gradients.compute(Parts(numbers, parts, [numbers]), ours.num_targets, taken, lambda: None)
        clip_gradients(model, settings.clip_norm)
        optimizer.step()
        average.update(taken)

    return step


def bucketed(source_lengths: Any, target_lengths: Any, sentences: int, batches: int) -> list[Any]:
    """Batches of about equal lengths, with as many tokens as so many sentences have on average."""
    budget = round(sentences * float(np.mean(source_lengths + target_lengths)))
    found = BucketedBatches(source_lengths.astype(np.int32), target_lengths.astype(np.int32), budget, seed=1).epoch(0)
    return found[:batches]


if __name__ == "__main__":
    serve_training(make_step, bucketed, "heedful")
