"""Whether the mask keeps the future out: gradients that must be exactly zero, and what leaks without it."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Evidence, Verdict, bars, mean, number, series, shown_loss, weighed
from heedful.claims.learning.text import held_out_windows, reference_text
from heedful.claims.learning.text_trials import LENGTH, RATE, TextTrial, build, learn_text, result_of, small_config
from heedful.claims.workbench import Workbench
from heedful.layers.stacks import Encoder
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig

SCHEMES = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative_buckets")
PREFIXES = (7, 19, 37, 59)


class Unmasked(nn.Module):
    """A language model whose positions all see each other, and so the characters that they should predict."""

    def __init__(self, model: DecoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BT: Tensor) -> Tensor:
        """The logits B T V, with no mask."""
        model, places_T = self.model, torch.arange(ids_BT.shape[1])
        return model.output(model.norm(model.blocks(model.embedding(ids_BT, places_T), positions=places_T)))


def gradients_by_side(stack: Encoder, x_1TD: Tensor, *, causal: bool) -> tuple[float, float]:
    """The largest gradient of any output to a later input, and the least, over outputs, of the largest to the rest."""
    x_1TD = x_1TD.detach().requires_grad_()
    output_1TD = stack(x_1TD, causal=causal)
    future, past = 0.0, math.inf
    for place in range(x_1TD.shape[1]):
        (slope_1TD,) = torch.autograd.grad(output_1TD[0, place, 0], x_1TD, retain_graph=True)
        size_T = slope_1TD[0].abs().amax(-1)
        future = max(future, float(size_T[place + 1 :].max()) if place + 1 < len(size_T) else 0.0)
        past = min(past, float(size_T[: place + 1].max()))
    return future, past


@torch.no_grad()
def honest_loss(model: nn.Module, ids_BT: Tensor) -> float:
    """The loss of a character when the model is given only those before it."""
    losses = [F.cross_entropy(model(ids_BT[:, :length])[:, -1], ids_BT[:, length]) for length in PREFIXES]
    return shown_loss(float(torch.stack(losses).mean()))


def judge(future: list[float], open_future: list[float], honest: dict[str, list[float]]) -> tuple[Verdict, str]:
    """It holds if no gradient at all reaches the future with the mask, and a model without it is worse."""
    if any(future):
        return "does not hold at this size", f"with the mask a gradient of {max(future):.2g} reaches a later input"
    words = (
        "with the mask every gradient to a later input is exactly 0, without it the largest of each stack are at "
        f"least {min(open_future):.2g}; given only what comes before, a model that has learned without it has a loss "
        f"of {mean(honest['no mask']):.2f} per character, and one with it {mean(honest['mask']):.2f}"
    )
    return weighed(
        words,
        {
            "no gradient to the future with the mask": True,
            "gradients to the future without it": min(open_future) > 0,
            "a model without it is worse": mean(honest["no mask"]) > mean(honest["mask"]),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Gradients of untrained stacks with every position scheme, and two models of text."""
    closed, opened = [], []
    for scheme in SCHEMES:
        for seed in (1, 2, 3):
            torch.manual_seed(seed)
            stack = Encoder(32, StackConfig(3, "pre", 0.0, AttentionConfig(4)), scheme, 13).eval()
            x_1TD = torch.randn(1, 13, 32)
            closed.append(gradients_by_side(stack, x_1TD, causal=True)[0])
            opened.append(gradients_by_side(stack, x_1TD, causal=False)[0])
    steps = bench.choose(250, 400)
    runs = [_run(bench, kind, seed, steps) for kind in ("mask", "no mask") for seed in bench.seeds]
    by_kind = {kind: [each for each in runs if each["kind"] == kind] for kind in ("mask", "no mask")}
    honest = {kind: [each["honest"] for each in found] for kind, found in by_kind.items()}
    seen = {kind: [each["loss"] for each in found] for kind, found in by_kind.items()}
    verdict, words = judge(closed, opened, honest)
    places = ("whole text given", "only what comes before")
    lines = [series(kind, (0, 1), list(zip(seen[kind], honest[kind], strict=True))) for kind in by_kind]
    return Evidence(
        f"3-layer stacks of 13 positions, {len(SCHEMES)} position schemes, 3 seeds: the gradient of each output to "
        f"each later input; 2-layer models of characters, {steps} steps at a rate of {RATE:g}, with and without the "
        "mask",
        verdict,
        words,
        (
            number("largest gradient to a later input, mask", closed),
            number("largest gradient to a later input, no mask", opened),
            number("loss, mask, only what comes before", honest["mask"], "nats/character"),
            number("loss, no mask, whole text given", seen["no mask"], "nats/character"),
            number("loss, no mask, only what comes before", honest["no mask"], "nats/character"),
            number("loss of guessing all alike", [math.log(reference_text().vocabulary_size)], "nats/character"),
        ),
        (bars("Held-out loss", "nats per character", places, lines),),
    )


def _run(bench: Workbench, kind: str, seed: int, steps: int) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        bench.tell(f"a model with {kind}, seed {seed}")
        trial = TextTrial(small_config(), seed, steps)
        model = build(trial) if kind == "mask" else Unmasked(build(trial))
        learned = learn_text(model, trial)
        found = result_of(model, trial, learned)
        return {"kind": kind, "loss": found.loss, "honest": honest_loss(model, held_out_windows(LENGTH))}

    return bench.own.value("run", [kind, seed, steps], make)
