"""Whether the feed-forward network works at each position separately, and what its inner width gains."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from heedful.claims.evidence import (
    Chart,
    Evidence,
    Series,
    Verdict,
    clearly_below,
    mean,
    number,
    series,
    told_parts,
    weighed,
)
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, small_config, tried, tuned
from heedful.claims.workbench import Workbench
from heedful.layers.feed_forward import FeedForward
from heedful.settings.feed_forward import FeedForwardConfig

WIDTH = 64
FACTORS = (1, 2, 4, 8)


@torch.no_grad()
def shuffle_error(network: nn.Module, x_BTD: Tensor, order_T: Tensor) -> float:
    """The difference between shuffling before and shuffling after, relative to the output."""
    after = network(x_BTD)[:, order_T]
    return float((network(x_BTD[:, order_T]) - after).norm() / after.norm())


def reached_positions(network: nn.Module, x_1TD: Tensor) -> int:
    """The most positions of the output that change when one position of the input does."""
    most = 0
    with torch.no_grad():
        plain = network(x_1TD)
        for place in range(x_1TD.shape[1]):
            changed = x_1TD.clone()
            changed[:, place] += 1.0
            most = max(most, int(((network(changed) - plain).abs().amax(-1) > 1e-6).sum()))
    return most


def judge(errors: list[float], reached: int, losses: dict[int, list[float]]) -> tuple[Verdict, str]:
    """Three parts: position-wise, exactly; 4 d is better than 2 d; and doubling it again gains less than that."""
    ends = {factor: mean(found) for factor, found in losses.items()}
    words = (
        f"shuffling positions before or after differs by {max(errors):.1e}, and a changed position changes {reached} "
    )
    words += "position of the output; the loss is " + ", ".join(
        f"{end:.3f} ({factor}d)" for factor, end in ends.items()
    )
    parts = {
        "each position separately and identically": max(errors) <= 1e-5 and reached == 1,
        "4d better than 2d": clearly_below(losses[4], losses[2]),
        "8d gains less over 4d than 4d over 2d": ends[4] - ends[8] < ends[2] - ends[4],
    }
    if max(errors) > 1e-5 or reached != 1:
        return "does not hold at this size", told_parts(words, parts)
    if min(ends.values()) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(words, parts)


def measure(bench: Workbench) -> Evidence:
    """Shuffled positions, and models of text with networks of each width."""
    errors, reached = [], 0
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        network = FeedForward(WIDTH, FeedForwardConfig()).eval()
        errors.append(shuffle_error(network, torch.randn(3, 31, WIDTH), torch.randperm(31)))
        reached = max(reached, reached_positions(network, torch.randn(1, 13, WIDTH)))
    factors, steps = bench.choose(FACTORS[1:], FACTORS), bench.choose(240, 750)
    best = {
        factor: tuned(bench, TextTrial(small_config(WIDTH, inner_width=factor * WIDTH), 0, steps)) for factor in factors
    }
    rates = {f"{factor}d": each.learning_rate for factor, each in best.items()}
    found = {factor: [tried(bench, replace(each, seed=seed)) for seed in bench.seeds] for factor, each in best.items()}
    losses = {factor: [each.loss for each in runs] for factor, runs in found.items()}
    seconds = {factor: [1e3 * each.seconds / steps for each in runs] for factor, runs in found.items()}
    verdict, words = judge(errors, reached, losses)
    return Evidence(
        f"a network of width {WIDTH} on 31 positions, 3 seeds; 2-layer models of characters whose inner width is "
        f"{', '.join(rates)}, {steps} steps, each at the best of three rates ({told_rates(rates)})",
        verdict,
        words,
        (
            number("change by shuffling before in place of after", errors),
            number("positions that one position reaches", [reached]),
            *(
                number(f"held-out loss, inner width {factor}d", each, "nats/character")
                for factor, each in losses.items()
            ),
            *(number(f"time per step, inner width {factor}d", each, "ms") for factor, each in seconds.items()),
        ),
        (
            Chart(
                "Held-out loss against the inner width",
                "inner width / d",
                "nats per character",
                (_line("loss", losses),),
                x_log=True,
            ),
            Chart("Time per step", "inner width / d", "ms", (_line("time", seconds),), x_log=True),
        ),
    )


def _line(name: str, found: dict[int, list[float]]) -> Series:
    return series(name, list(found), list(zip(*found.values(), strict=True)))
