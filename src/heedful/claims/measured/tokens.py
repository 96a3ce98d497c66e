"""Tokens of any kind on the same blocks: characters, words, pixels and patches; and the cost of patch sizes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import (
    Chart,
    Evidence,
    Verdict,
    bars,
    clearly_below,
    fitted_power,
    mean,
    number,
    series,
    weighed,
)
from heedful.claims.learning.course import PILOT_SEED, Course, Learned, best_rate, learn, told_rates
from heedful.claims.workbench import Workbench
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision, normalise
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.tasks.image_classification.demo_shapes import SHAPES, draw_shapes

SIZE, WIDTH, ROWS, IMAGES = 16, 48, 16, 3000
TOPICS, WORDS, SNIPPET = 6, 500, {"words": 16, "characters": 64}
STACK = StackConfig(2, "pre", 0.0, AttentionConfig(4))


@cache
def shapes(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images N 3 H W of six shapes, and which shape each shows."""
    images, classes = draw_shapes(count, seed, SIZE)
    return torch.from_numpy(images).movedim(-1, 1), torch.from_numpy(classes)


@cache
def topic_ids(kind: str) -> tuple[list[Tensor], int]:
    """The longest help texts as ids of words or of characters, and the number of ids; rare ones are 0."""
    longest = sorted(topics.values(), key=len)[-TOPICS:]
    texts: list[Any] = [text.split() for text in longest] if kind == "words" else longest
    counts: dict[str, int] = {}
    for text in texts:
        for each in text:
            counts[each] = counts.get(each, 0) + 1
    known = {
        each: place + 1 for place, each in enumerate(sorted(counts, key=lambda each: (-counts[each], each))[:WORDS])
    }
    return [torch.tensor([known.get(each, 0) for each in text]) for text in texts], len(known) + 1


def snippets(kind: str, rows: int, seed: tuple[int, ...], unseen: bool) -> tuple[Tensor, Tensor]:
    """Snippets of topics, and the topic of each; the last fifth of each topic is unseen in training."""
    random, (texts, _), length = np.random.default_rng(seed), topic_ids(kind), SNIPPET[kind]
    classes = random.integers(TOPICS, size=rows)
    found = []
    for number_of_topic in classes:
        text = texts[number_of_topic]
        cut = len(text) * 4 // 5
        part = text[cut:] if unseen else text[:cut]
        start = int(random.integers(len(part) - length))
        found.append(part[start : start + length])
    return torch.stack(found), torch.from_numpy(classes)


def image_model(patch: int, seed: int) -> Vision:
    """A vision model with square patches of `patch` pixels on a side."""
    torch.manual_seed(seed)
    return Vision(VisionConfig((SIZE, SIZE), (patch, patch), 3, len(SHAPES), WIDTH, "mean", stack=STACK))


def image_run(patch: int, seed: int, course: Course) -> dict[str, float]:
    """The share of unseen images classified correctly after training, and the time of a step."""
    model = image_model(patch, seed)
    pixels, classes = shapes(IMAGES, seed)

    def loss(step: int) -> Tensor:
        chosen = torch.from_numpy(np.random.default_rng((seed, step)).integers(IMAGES, size=ROWS))
        return F.cross_entropy(model(normalise(pixels[chosen], model.config.pixels)), classes[chosen])

    learned = learn(model, loss, course)
    unseen, answers = shapes(300, 1000 + seed)
    return _scored(model, normalise(unseen, model.config.pixels), answers, learned)


def text_run(kind: str, seed: int, course: Course) -> dict[str, float]:
    """The share of unseen snippets assigned to the right topic after training, and the time of a step."""
    torch.manual_seed(seed)
    vocabulary = topic_ids(kind)[1]
    model = EncoderOnly(
        EncoderOnlyConfig(vocabulary, WIDTH, SNIPPET[kind], stack=STACK, head="classes", num_labels=TOPICS)
    )

    def loss(step: int) -> Tensor:
        ids_BT, classes = snippets(kind, ROWS, (seed, step), unseen=False)
        return F.cross_entropy(model(ids_BT), classes)

    learned = learn(model, loss, course)
    return _scored(model, *snippets(kind, 300, (0, seed), unseen=True), learned)


@torch.no_grad()
def _scored(model: nn.Module, inputs: Tensor, answers: Tensor, learned: Learned) -> dict[str, float]:
    right = torch.cat([model(part).argmax(-1) for part in inputs.split(100)]) == answers
    milliseconds = 1e3 * learned.seconds[-1] / len(learned.seconds)
    return {"right": float(right.float().mean()), "milliseconds": milliseconds, "loss": learned.end}


def judge(
    right: dict[str, list[float]], by_patch: dict[int, list[float]], times: dict[int, list[float]]
) -> tuple[Verdict, str]:
    """Two parts: at each halving of the patch a step takes longer; and from the coarsest to the finest more is right.

    `right` has the shares of all kinds of tokens, each of which must have been learned beyond chance; `by_patch` has
    those of images by the size of the patch, and `times` has the milliseconds of their steps.
    """
    coarse_to_fine = sorted(times, reverse=True)
    power = fitted_power([patch**-2 for patch in times], [mean(found) for found in times.values()])
    words = "right answers: " + ", ".join(f"{mean(shares):.0%} ({name})" for name, shares in right.items())
    words += (
        f", where guessing gives {1 / TOPICS:.0%}; the time of a step grows as the number of patches to the power "
        f"{power:.2f}"
    )
    if min(map(mean, right.values())) <= 2 / TOPICS:
        return "too short to tell", words
    return weighed(
        words,
        {
            "smaller patches cost more": all(
                mean(times[coarse]) < mean(times[fine]) for coarse, fine in pairwise(coarse_to_fine)
            ),
            "smaller patches tell more": clearly_below(by_patch[coarse_to_fine[0]], by_patch[coarse_to_fine[-1]]),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Classifiers of images and of text, with the same two blocks."""
    patches = bench.choose((2, 4, 8), (1, 2, 4, 8))
    steps = bench.choose(240, 900)
    names = _names(patches)
    rates = {kind: _rate(bench, kind, steps // 3) for kind in names}
    runs = {
        name: [_kept(bench, kind, seed, Course(steps, rates[kind])) for seed in bench.seeds]
        for kind, name in names.items()
    }
    right = {name: [each["right"] for each in found] for name, found in runs.items()}
    time = {name: [each["milliseconds"] for each in found] for name, found in runs.items()}
    by_patch, times = ({patch: found[names[patch]] for patch in patches} for found in (right, time))
    verdict, words = judge(right, by_patch, times)
    order = sorted(patches, reverse=True)

    def against(found: dict[str, list[float]]) -> list[tuple[float, ...]]:
        return list(zip(*(found[names[patch]] for patch in order), strict=True))

    tokens = [(SIZE // patch) ** 2 for patch in order]
    return Evidence(
        f"2 blocks of width {WIDTH}, {ROWS} rows per step, {steps} steps, each kind at the best of three rates "
        f"({told_rates({name: rates[kind] for kind, name in names.items()})}): six shapes on images of {SIZE} x "
        f"{SIZE}, and six topics of the Python reference from {SNIPPET['words']} words or {SNIPPET['characters']} "
        "characters",
        verdict,
        words,
        (
            *(number(f"right, {name}", found) for name, found in right.items()),
            *(number(f"time per step, {name}", found, "ms") for name, found in time.items()),
        ),
        (
            bars(
                "Right answers by the kind of token",
                "share",
                list(right),
                [series("right", range(len(right)), list(zip(*right.values(), strict=True)))],
            ),
            Chart(
                "Images: right answers against the number of patches",
                "patches",
                "share",
                (series("right", tokens, against(right)),),
                x_log=True,
            ),
            Chart(
                "Images: time per step",
                "patches",
                "ms",
                (series("time", tokens, against(time)),),
                x_log=True,
                y_log=True,
            ),
        ),
    )


def _names(patches: tuple[int, ...]) -> dict[str | int, str]:
    """The names of all kinds of tokens: of text, and of images by the size of the patch."""
    images: dict[str | int, str] = {
        patch: "pixels" if patch == 1 else f"patches of {patch} x {patch}" for patch in patches
    }
    return {"words": "words", "characters": "characters", **images}


def _rate(bench: Workbench, kind: int | str, steps: int) -> float:
    return best_rate(lambda rate: _kept(bench, kind, PILOT_SEED, Course(steps, rate))["loss"])


def _kept(bench: Workbench, kind: int | str, seed: int, course: Course) -> dict[str, float]:
    def make() -> dict[str, float]:
        bench.tell(f"{kind if isinstance(kind, str) else f'patches of {kind}'}, seed {seed}")
        return image_run(kind, seed, course) if isinstance(kind, int) else text_run(kind, seed, course)

    return bench.own.value("tokens", [kind, seed, course.steps, course.learning_rate], make)
