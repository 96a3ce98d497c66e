"""Whether large scores keep the softmax from passing gradients on: its Jacobian, and training without the factor."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, told_parts, weighed
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, small_config, tried, tuned
from heedful.claims.workbench import Workbench
from heedful.settings.attention import AttentionConfig

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
KEYS = 64


def jacobian_norm(scores_NS: Tensor) -> Tensor:
    """The Frobenius norm of diag(p) - p p^T, the Jacobian of the softmax p, for each row of scores."""
    p_NS = scores_NS.double().softmax(-1)  # the terms below cancel where one key takes everything
    # |diag(p) - p p^T|^2 = sum of p_i^2 - 2 sum of p_i^3 + (sum of p_i^2)^2.
    squares_N = p_NS.square().sum(-1)
    return (squares_N - 2 * p_NS.pow(3).sum(-1) + squares_N.square()).clamp(min=0).sqrt()


def sampled_norms(width: int, seed: int, rows: int = 400) -> tuple[float, float]:
    """The median norm for queries and keys of unit variance: without the factor, and with it."""
    generator = torch.Generator().manual_seed(seed)
    query_N1K = torch.randn(rows, 1, width, generator=generator)
    key_NSK = torch.randn(rows, KEYS, width, generator=generator)
    scores_NS = (query_N1K * key_NSK).sum(-1)
    return float(jacobian_norm(scores_NS).median()), float(jacobian_norm(scores_NS * width**-0.5).median())


def judge(plain: list[float], scaled: list[float], losses: dict[str, list[float]]) -> tuple[Verdict, str]:
    """Two parts: the unscaled Jacobian vanishes with d_k, or it does not hold; and training suffers from it."""
    fall = plain[0] / max(plain[-1], 1e-12)
    steady = max(scaled) / min(scaled)
    words = (
        f"from d_k {WIDTHS[0]} to {WIDTHS[-1]} the Jacobian's norm falls {fall:,.0f}-fold without the factor and "
        f"changes {steady:.2f}-fold with it; the loss after training is {mean(losses['not scaled']):.3f} without the "
        f"factor and {mean(losses['scaled']):.3f} with it"
    )
    parts = {
        "without the factor the Jacobian vanishes": fall >= 3 and steady <= 1.5,
        "training suffers without the factor": clearly_below(losses["scaled"], losses["not scaled"]),
    }
    if fall < 3 or steady > 1.5:
        return "does not hold at this size", told_parts(words, parts)
    if mean(losses["scaled"]) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(words, parts)


def measure(bench: Workbench) -> Evidence:
    """Random scores, and models with one wide head."""
    norms = [[sampled_norms(width, seed) for width in WIDTHS] for seed in (1, 2, 3)]
    plain, scaled = ([[pair[kind] for pair in row] for row in norms] for kind in (0, 1))
    key_width, steps = 256, bench.choose(300, 400)
    losses, curves, rates = {}, [], {}
    for name, is_scaled in (("scaled", True), ("not scaled", False)):
        attention = AttentionConfig(1, key_width=key_width, value_width=64, scaled=is_scaled)
        best = tuned(bench, TextTrial(small_config(attention=attention), 0, steps))
        rates[name] = best.learning_rate
        found = [tried(bench, replace(best, seed=seed)) for seed in bench.seeds]
        losses[name] = [each.loss for each in found]
        points = [steps * (place + 1) / len(found[0].curve) for place in range(len(found[0].curve))]
        curves.append(series(name, points, [each.curve for each in found]))
    middle = [[mean(column) for column in zip(*rows, strict=True)] for rows in (plain, scaled)]
    verdict, words = judge(middle[0], middle[1], losses)
    return Evidence(
        f"scores of {KEYS} keys, 400 queries for each d_k, 3 seeds; 2-layer models of characters with one head of d_k "
        f"{key_width}, {steps} steps, each kind at the best of three rates ({told_rates(rates)})",
        verdict,
        words,
        (
            number(f"norm at d_k {WIDTHS[-1]}, not scaled", [row[-1] for row in plain]),
            number(f"norm at d_k {WIDTHS[-1]}, scaled", [row[-1] for row in scaled]),
            *(number(f"held-out loss, {name}", found, "nats/character") for name, found in losses.items()),
        ),
        (
            Chart(
                "The Jacobian of the softmax",
                "d_k",
                "norm (median)",
                (series("q.k / sqrt(d_k)", WIDTHS, scaled), series("q.k", WIDTHS, plain)),
                x_log=True,
                y_log=True,
            ),
            Chart(f"Training with one head of d_k {key_width}", "step", "training loss", tuple(curves)),
        ),
    )
