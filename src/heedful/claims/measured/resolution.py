"""A vision model at a resolution other than in training: its positions interpolated, cut or tiled, or tuned."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, told_parts, weighed
from heedful.claims.learning.course import Course, learn
from heedful.claims.workbench import Workbench
from heedful.models.vision import Vision, normalise
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig

SIZE, PATCH, DOT = 16, 4, 3
RATE, TUNING_RATE = 0.003, 0.001
FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
WAYS = ("interpolated", "cropped or tiled", "interpolated, then fine-tuned")


def dots(count: int, size: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Images N 1 S S of noise with a bright dot; the class is the quarter in which its middle lies.

    A quarter is at least one patch at every size, so that the patches' positions reveal it.
    """
    random = np.random.default_rng(seed)
    images = random.integers(0, 60, (count, 1, size, size)).astype(np.uint8)
    corners = random.integers(size - DOT + 1, size=(count, 2))
    for image, (row, column) in zip(images, corners, strict=True):
        image[0, row : row + DOT, column : column + DOT] = 220
    halves = (corners + DOT / 2 > size / 2).astype(np.int64)
    return torch.from_numpy(images), torch.from_numpy(2 * halves[:, 0] + halves[:, 1])


def cropped_or_tiled(table: Tensor, grid: Sequence[int]) -> Tensor:
    """A table of positions cut to a smaller grid, or repeated over a larger one: the control."""
    for axis, length in enumerate(grid):
        table = table.index_select(axis, torch.arange(length) % table.shape[axis])
    return table


@torch.no_grad()
def accuracy(model: Vision, size: int) -> float:
    """The share of unseen images of a size that are classified correctly."""
    pixels, classes = dots(400, size, (0, size))
    return float((model(normalise(pixels, model.config.pixels)).argmax(-1) == classes).float().mean())


def train_on(model: Vision, size: int, seed: int, course: Course) -> None:
    """Train a model on images of a size."""

    def loss(step: int) -> Tensor:
        pixels, classes = dots(32, size, (seed, step, size))
        return F.cross_entropy(model(normalise(pixels, model.config.pixels)), classes)

    learn(model, loss, course)


def judge(found: dict[str, list[float]]) -> tuple[Verdict, str]:
    """Two parts: interpolated positions keep most of the accuracy, and the control loses more; rows are by factor.

    If they lose more than half of it, the claim does not hold, however much the control loses.
    """
    at_home = found["interpolated"][FACTORS.index(1.0)]
    others = [place for place, factor in enumerate(FACTORS) if factor != 1.0]
    worst, control = (min(found[way][place] for place in others) for way in WAYS[:2])
    tuned = min(found[WAYS[2]][place] for place in others)
    words = (
        f"of {at_home:.0%} at its own resolution, interpolated positions keep {worst:.0%} at the worst of the others, "
        f"cut or tiled ones {control:.0%}, and a short fine-tuning reaches {tuned:.0%}"
    )
    if at_home < 0.8:
        return "too short to tell", words
    better = mean([found[WAYS[0]][place] - found[WAYS[1]][place] for place in others])
    parts = {
        "interpolated positions keep four fifths": worst > 0.8 * at_home,
        "they keep clearly more than cut or tiled ones": better > 0.1,
    }
    if better <= 0 or worst < 0.5 * at_home:
        return "does not hold at this size", told_parts(words, parts)
    return weighed(words, parts)


def measure(bench: Workbench) -> Evidence:
    """One model per seed, at all sizes and in all ways."""
    steps = bench.choose(250, 500)
    rows = [bench.own.value("sizes", [seed, steps], partial(_run, bench, seed, steps)) for seed in bench.seeds]
    means = {way: [mean(column) for column in zip(*(row[way] for row in rows), strict=True)] for way in WAYS}
    verdict, words = judge(means)
    chosen = [place for place, factor in enumerate(FACTORS) if factor in (0.5, 1.0, 2.0)]
    return Evidence(
        f"a 2-layer ViT with patches of {PATCH}, trained on images of {SIZE} x {SIZE} for {steps} steps at a rate "
        f"of {RATE:g} to tell which quarter of the image holds a dot, which is as large in pixels at every size, so "
        f"that only positions are put to the test; read at {int(FACTORS[0] * SIZE)} to {int(FACTORS[-1] * SIZE)}; "
        f"fine-tuning takes {steps // 10} steps at a rate of {TUNING_RATE:g}",
        verdict,
        words,
        tuple(
            number(f"right at {FACTORS[place]:g}x, {way}", [row[way][place] for row in rows])
            for way in WAYS
            for place in chosen
        ),
        (
            Chart(
                "Right answers against the resolution",
                "resolution, in that of the training",
                "share of images",
                tuple(series(way, FACTORS, [row[way] for row in rows]) for way in WAYS),
            ),
        ),
    )


def _run(bench: Workbench, seed: int, steps: int) -> dict[str, Any]:
    bench.tell(f"a vision model, seed {seed}")
    torch.manual_seed(seed)
    stack = StackConfig(2, "pre", 0.0, AttentionConfig(4), FeedForwardConfig(128, "gelu"), norm_epsilon=1e-6)
    model = Vision(VisionConfig((SIZE, SIZE), (PATCH, PATCH), 1, 4, 48, "class_token", stack=stack))
    train_on(model, SIZE, seed, Course(steps, RATE))
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for factor in FACTORS:
        size = round(factor * SIZE)
        found[WAYS[0]].append(accuracy(model, size))
        control = copy.deepcopy(model)
        control.positions.table = nn.Parameter(cropped_or_tiled(model.positions.table.detach(), (size // PATCH,) * 2))
        found[WAYS[1]].append(accuracy(control, size))
        tuned = copy.deepcopy(model)
        train_on(tuned, size, seed + 100, Course(steps // 10, TUNING_RATE))
        found[WAYS[2]].append(accuracy(tuned, size))
    return found
