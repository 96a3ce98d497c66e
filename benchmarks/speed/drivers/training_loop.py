"""What all training drivers share: load once, then take the same few steps again whenever asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from padded_batches import Batch, Pairs, random_batches
from protocol import serve, versions
from torch import Tensor, nn

# The sizes of a model, by name: width, layers (of each stack), heads, inner, vocabulary.
Size = dict[str, int]
# One optimizer step on one batch.
Step = Callable[[Batch], None]
# Lengths of sources and targets, sentences a batch, number of batches -> the indices of each batch.
Recipe = Callable[[Any, Any, int, int], list[Any]]

LABEL_SMOOTHING = 0.1
DROPOUT = 0.1
LEARNING_RATE = 1e-4


def serve_training(make_step: Callable[[Size], Step], recipe: Recipe | None, *packages: str) -> None:
    """Serve `load` and `run`; without a recipe of its own a system draws its batches at random."""
    state: dict[str, Any] = {}

    def load(size: Size, pairs: str, sentences: int, batches: int, threads: int) -> dict[str, Any]:
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        corpus = Pairs(pairs)
        same = random_batches(len(corpus.sources), sentences, batches)
        own = recipe(*corpus.lengths(), sentences, batches) if recipe else same
        state["batches"] = {"same": list(map(corpus.batch, same)), "own": list(map(corpus.batch, own))}
        state["step"] = make_step(size)
        return {"versions": versions("torch", *packages), "has_recipe": recipe is not None}

    def run(which: str) -> dict[str, Any]:
        chosen: list[Batch] = state["batches"][which]
        started = time.perf_counter()
        for batch in chosen:
            state["step"](batch)
        seconds = time.perf_counter() - started
        shapes = [(*batch.source_BS.shape, batch.target_BT.shape[1]) for batch in chosen]
        padded = sum(rows * (source + target) for rows, source, target in shapes)
        real = sum(batch.source_tokens + batch.target_tokens for batch in chosen)
        lengths = [(batch.source_lengths_B.tolist(), (batch.labels_BT != 0).sum(1).tolist()) for batch in chosen]
        return {
            "seconds": seconds,
            "target_tokens": sum(batch.target_tokens for batch in chosen),
            "padding": 1 - real / padded,
            "lengths": lengths,
        }

    serve({"load": load, "run": run})


def ordinary_step(model: nn.Module, loss: Callable[[Batch], Tensor], optimizer: torch.optim.Optimizer) -> Step:
    """Forward, backward, clip, step: what every one of these libraries' loops comes down to."""
    model.train()
    parameters = list(model.parameters())

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        loss(batch).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


def fused_adamw(model: nn.Module) -> torch.optim.Optimizer:
    """The fastest optimizer that torch has for a CPU."""
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), fused=True)
