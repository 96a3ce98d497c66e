"""Additive, dot-product and unscaled dot-product attention against d_k: quality, time and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, weighed
from heedful.claims.learning.clock import seconds_now
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, small_config, tried, tuned
from heedful.claims.workbench import Workbench
from heedful.layers.additive_scores import plain_additive_scores
from heedful.layers.attention import Scoring
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig

SCORINGS = {
    "dot product, scaled": AttentionConfig(2),
    "dot product, not scaled": AttentionConfig(2, scaled=False),
    "additive": AttentionConfig(2, scoring="additive"),
}
ROWS, HEADS, LENGTH, TIMED = 8, 2, 64, (4, 16, 64, 256)


def kept_bytes(compute: Callable[[], Tensor]) -> int:
    """The bytes that a computation keeps for its backward pass."""
    seen: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        compute()
    return sum(seen.values())


def seconds_of(compute: Callable[[], Tensor], repeats: int = 5) -> float:
    """The least time of several forward and backward passes, after one that does not count."""
    found = []
    for _ in range(repeats + 1):
        began = seconds_now()
        compute().sum().backward()
        found.append(seconds_now() - began)
    return min(found[1:])


def score_functions(width: int) -> dict[str, Callable[[], Tensor]]:
    """Functions that compute the scores of each kind, on random queries and keys."""
    torch.manual_seed(width)
    query, key = (torch.randn(ROWS, HEADS, LENGTH, width, requires_grad=True) for _ in range(2))
    vector_HK = torch.randn(HEADS, width, requires_grad=True)
    return {
        "dot product": lambda: Scoring(width**-0.5)(query, key),
        "additive": lambda: Scoring(1.0, vector_HK)(query, key),
        "additive, written out": lambda: plain_additive_scores(query, key, vector_HK),
    }


def judge(loss: dict[str, list[list[float]]], slower: float, larger: float) -> tuple[Verdict, str]:
    """Three parts: alike for the least d_k, unscaled behind for the greatest, dot product faster and smaller.

    `loss` holds, for each scoring, the losses of all seeds at each d_k.
    """
    dot, plain, additive = (loss[name] for name in SCORINGS)
    parts = {
        "alike for the least d_k": abs(mean(dot[0]) / mean(additive[0]) - 1) < 0.03,
        "unscaled behind for the greatest": clearly_below(additive[-1], plain[-1])
        and clearly_below(dot[-1], plain[-1]),
        "dot product faster and smaller": slower > 1 and larger > 1,
    }
    words = (
        f"at the least d_k additive and scaled dot product end at {mean(additive[0]):.3f} and {mean(dot[0]):.3f}; at "
        f"the greatest, unscaled dot product ends at {mean(plain[-1]):.3f}, scaled at {mean(dot[-1]):.3f}, additive at "
        f"{mean(additive[-1]):.3f}; additive scores take {slower:.1f} times as long, and written out {larger:.0f} "
        "times the memory"
    )
    if mean(dot[0]) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(words, parts)


def measure(bench: Workbench) -> Evidence:
    """Models of text with each scoring and d_k; the scores alone for time and memory."""
    widths, steps = bench.choose((8, 128), (4, 32, 128)), bench.choose(100, 600)
    best = {
        name: [tuned(bench, TextTrial(model_with(config, width), 0, steps)) for width in widths]
        for name, config in SCORINGS.items()
    }
    losses = {
        name: [[tried(bench, replace(each, seed=seed)).loss for seed in bench.seeds] for each in found]
        for name, found in best.items()
    }
    rates = {
        f"{name} at d_k {width}": each.learning_rate
        for name, found in best.items()
        for width, each in zip(widths, found, strict=True)
    }
    costs = [bench.own.value("cost", width, partial(_costs, width)) for width in TIMED]
    slower = mean([each["additive"][0] / each["dot product"][0] for each in costs])
    larger = mean([each["additive, written out"][1] / each["dot product"][1] for each in costs])
    verdict, words = judge(losses, slower, larger)
    quality = tuple(series(name, widths, list(zip(*found, strict=True))) for name, found in losses.items())
    nats = "nats/character"
    return Evidence(
        f"2-layer models of characters, 2 heads of d_k {', '.join(map(str, widths))}, with the paper's positions added "
        f"to scaled embeddings, so that they take no part of d_k; {steps} steps each, each kind at the best of three "
        f"rates ({told_rates(rates)}); the scores of "
        f"{ROWS} x {HEADS} heads of {LENGTH} positions, forward and backward",
        verdict,
        words,
        (
            *(number(f"held-out loss at d_k {widths[-1]}, {name}", found[-1], nats) for name, found in losses.items()),
            *(number(f"held-out loss at d_k {widths[0]}, {name}", found[0], nats) for name, found in losses.items()),
            number("time of additive scores, in that of dot products", [slower]),
            number("memory of additive scores, written out, in that of dot products", [larger]),
        ),
        (
            Chart("Held-out loss", "d_k", "nats per character", quality, x_log=True),
            _cost_chart("Time of the scores", "ms", [{name: 1e3 * each[name][0] for name in each} for each in costs]),
            _cost_chart(
                "Memory kept for the backward pass",
                "MB",
                [{name: 1e-6 * each[name][1] for name in each} for each in costs],
            ),
        ),
    )


def model_with(config: AttentionConfig, width: int) -> DecoderOnlyConfig:
    """A model with keys of a width; positions are added to its embeddings, so that all scorings know them alike."""
    attention = replace(config, key_width=width, value_width=32)
    return small_config(positions="sinusoidal", scaled_embedding=True, attention=attention)


def _cost_chart(title: str, unit: str, costs: list[dict[str, float]]) -> Chart:
    lines = tuple(series(name, TIMED, [[each[name] for each in costs]]) for name in costs[0])
    return Chart(title, "d_k", unit, lines, x_log=True, y_log=True)


def _costs(width: int) -> dict[str, list[float]]:
    return {name: [seconds_of(compute), kept_bytes(compute)] for name, compute in score_functions(width).items()}
