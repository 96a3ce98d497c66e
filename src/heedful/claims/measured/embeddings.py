"""Embeddings times sqrt(d_model), and shared with the output: their norms beside positions, and what each gains."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, weighed
from heedful.claims.learning.course import PILOT_SEED, best_rate, told_rates
from heedful.claims.learning.translators import (
    TranslationTrial,
    learn_translation,
    translation_scores,
    translator_config,
)
from heedful.claims.workbench import Workbench
from heedful.layers.blocks import initialise
from heedful.layers.positions.sinusoidal import sinusoid_table
from heedful.models.encoder_decoder import EncoderDecoder

WIDTHS = (32, 64, 128, 256, 512)
WAYS = {
    "scaled, shared": (True, True),
    "not scaled, shared": (False, True),
    "scaled, not shared": (True, False),
    "not scaled, not shared": (False, False),
}


def mean_norm(x_ND: Tensor) -> float:
    """The mean length of some vectors."""
    return float(x_ND.norm(dim=-1).mean())


def norms(width: int, seed: int) -> tuple[float, float, float]:
    """The mean length of an embedding, of a scaled one, and of a position."""
    torch.manual_seed(seed)
    table = nn.Embedding(97, width)
    initialise(table)
    length = mean_norm(table.weight.detach())
    return length, length * width**0.5, mean_norm(sinusoid_table(64, width))


def judge(
    plain: float, scaled: float, losses: dict[str, list[float]], right: dict[str, list[float]], saved: float
) -> tuple[Verdict, str]:
    """Two parts: scaled embeddings train better, and sharing is free.

    `plain` and `scaled` are lengths as multiples of the positions' length, at the greatest width and the first weights:
    they say why, but are chosen by who sets the weights. Without its source no model gets half of the words `right`.
    """
    ends = {way: mean(found) for way, found in losses.items()}
    words = (
        f"beside positions of length 1, embeddings of the greatest width begin with a length of {plain:.2f}, and "
        f"scaled ones of {scaled:.2f}; sharing saves {saved:.0%} of the parameters; the loss after training "
    )
    words += "is " + ", ".join(f"{end:.3f} ({way})" for way, end in ends.items())
    if mean(right["scaled, shared"]) < 0.5:
        return "too short to tell", words
    return weighed(
        words,
        {
            "scaled embeddings train better": clearly_below(losses["scaled, shared"], losses["not scaled, shared"]),
            "sharing costs no quality": ends["scaled, shared"] <= 1.1 * ends["scaled, not shared"] + 0.01,
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Lengths at the initial weights, and translators of each kind."""
    rows = [[norms(width, seed) for width in WIDTHS] for seed in (1, 2, 3)]
    steps = bench.choose(150, 300)
    rates = {way: _rate(bench, way, steps // 3) for way in WAYS}
    found = {way: [_kept(bench, way, seed, steps, rates[way]) for seed in bench.seeds] for way in WAYS}
    losses = {way: [each["loss"] for each in runs] for way, runs in found.items()}
    plain, scaled, position = (mean([row[-1][place] for row in rows]) for place in range(3))
    sizes = {way: runs[0]["parameters"] for way, runs in found.items()}
    saved = 1 - sizes["scaled, shared"] / sizes["scaled, not shared"]
    right = {way: [each["right"] for each in runs] for way, runs in found.items()}
    verdict, words = judge(plain / position, scaled / position, losses, right, saved)
    lines = [
        series(name, WIDTHS, [[each[place] for each in row] for row in rows])
        for place, name in enumerate(("embedding", "embedding times sqrt(d)", "position"))
    ]
    curves = [
        series(
            way,
            [steps * (n + 1) / len(runs[0]["curve"]) for n in range(len(runs[0]["curve"]))],
            [each["curve"] for each in runs],
        )
        for way, runs in found.items()
    ]
    return Evidence(
        f"tables at their first weights for d_model {WIDTHS[0]} to {WIDTHS[-1]}, 3 seeds; 2+2-layer translators of a "
        f"little language, width 64, {steps} steps, with embeddings scaled or not, and one table for source, target "
        f"and output or three, each at the best of three rates ({told_rates(rates)})",
        verdict,
        words,
        (
            *(number(f"held-out loss, {way}", each, "nats/word") for way, each in losses.items()),
            *(number(f"right words, {way}", each) for way, each in right.items()),
            *(number(f"parameters, {way}", [size]) for way, size in sizes.items()),
        ),
        (
            Chart("Lengths of vectors at first", "d_model", "mean length", tuple(lines), x_log=True, y_log=True),
            Chart("Training", "step", "training loss", tuple(curves), y_log=True),
        ),
    )


def _rate(bench: Workbench, way: str, steps: int) -> float:
    return best_rate(lambda rate: _kept(bench, way, PILOT_SEED, steps, rate)["curve"][-1])


def _kept(bench: Workbench, way: str, seed: int, steps: int, rate: float) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        bench.tell(f"embeddings {way}, seed {seed}")
        scaled, shared = WAYS[way]
        torch.manual_seed(seed)
        config = translator_config(scaled_embedding=scaled, tied=shared)
        model = EncoderDecoder(config)
        learned = learn_translation(model, TranslationTrial(config, seed, steps, learning_rate=rate))
        loss, right = translation_scores(model)
        parameters = sum(each.numel() for each in model.parameters())
        return {"loss": loss, "right": right, "curve": learned.curve, "parameters": parameters}

    return bench.own.value("way", [way, seed, steps, rate], make)
