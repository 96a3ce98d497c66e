"""Whether a far token is found: recall over a distance, and the gradient from the output back to it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, weighed
from heedful.claims.learning.course import PILOT_SEED, Course, best_rate, learn, told_rates
from heedful.claims.learning.recurrent_text import RecurrentReader, width_for
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.stack import StackConfig

KINDS = ("Transformer", "LSTM", "GRU")
# The token to be recalled is one of the answers; the fillers only take up the distance, and ASK asks for it.
ANSWERS, FILLERS = 10, 10
ASK = ANSWERS + FILLERS
VOCABULARY = ASK + 1
WIDTH, LAYERS, ROWS, PILOT_DISTANCE = 48, 2, 16, 32
# The least gradient that a logarithmic chart shows: far below what 512 steps of a recurrent model leave of one.
LEAST = 1e-300


def recall_rows(distance: int, rows: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Rows that begin with a token to be recalled, continue with fillers, and ask for it that many tokens later."""
    generator = torch.Generator().manual_seed(sum(part * 1_000_003**place for place, part in enumerate(seed)))
    answers_B = torch.randint(0, ANSWERS, (rows,), generator=generator)
    fillers = torch.randint(ANSWERS, ASK, (rows, distance - 1), generator=generator)
    return torch.cat([answers_B[:, None], fillers, torch.full((rows, 1), ASK)], 1), answers_B


def far_gradient(hidden: Callable[[Tensor], Tensor], x_BTD: Tensor, seed: int) -> float:
    """The gradient from the last output to the first input, as a multiple of that to the last input.

    The output is taken in a random direction: the plain sum of what a layer norm puts out is always 0 at first, and so
    is its gradient.
    """
    x_BTD = x_BTD.detach().requires_grad_()
    output_BW = hidden(x_BTD)[:, -1]
    probe_W = torch.randn(output_BW.shape[1], generator=torch.Generator().manual_seed(seed)).to(output_BW)
    (slope,) = torch.autograd.grad((output_BW * probe_W).sum(), x_BTD)
    return float(slope[:, 0].norm() / slope[:, -1].norm())


def first_gradient(model: nn.Module, ids_BT: Tensor, seed: int) -> float:
    """The far gradient of a model at its first weights, in double precision: single would show tiny ones as zero."""
    model = copy.deepcopy(model).double()
    if isinstance(model, DecoderOnly):
        blocks, norm = model.blocks, model.norm
        x_BTD = model.embedding(ids_BT, torch.arange(ids_BT.shape[1]))
        return far_gradient(lambda x: norm(blocks(x, causal=True)), x_BTD, seed)
    assert isinstance(model, RecurrentReader)
    return far_gradient(model.hidden, model.embedding(ids_BT), seed)


def new_model(kind: str, distance: int, seed: int) -> nn.Module:
    """A model of a kind; all kinds have about the same number of parameters."""
    torch.manual_seed(seed)
    stack = StackConfig(LAYERS, "pre", 0.0, AttentionConfig(4))
    config = DecoderOnlyConfig(VOCABULARY, WIDTH, distance + 1, "rotary", stack=stack)
    transformer = DecoderOnly(config)
    if kind == "Transformer":
        return transformer
    parameters = sum(each.numel() for each in transformer.parameters())
    cell: Any = kind.lower()
    return RecurrentReader(VOCABULARY, width_for(parameters, VOCABULARY, LAYERS, cell), LAYERS, cell)


def run(kind: str, distance: int, seed: int, steps: int, rate: float) -> dict[str, float]:
    """How well a model recalls after training at a distance, and its gradient to the far token before that."""
    model = new_model(kind, distance, seed)
    gradient = first_gradient(model, recall_rows(distance, ROWS, (seed, 0))[0], seed)

    def loss(step: int) -> Tensor:
        ids_BT, answers_B = recall_rows(distance, ROWS, (seed, step + 1))
        return F.cross_entropy(model(ids_BT)[:, -1], answers_B)

    learned = learn(model, loss, Course(steps, rate))
    with torch.no_grad():
        ids_BT, answers_B = recall_rows(distance, 100, (0, distance))
        right = float((model(ids_BT)[:, -1].argmax(-1) == answers_B).float().mean())
    parameters = sum(each.numel() for each in model.parameters())
    return {"right": right, "gradient": max(gradient, LEAST), "loss": learned.end, "parameters": parameters}


def reach(distances: tuple[int, ...], right: list[float]) -> int:
    """The greatest distance up to which nine in ten tokens are recalled; 0 if there is none."""
    found = 0
    for distance, share in zip(distances, right, strict=True):
        if share < 0.9:
            break
        found = distance
    return found


def judge(reaches: dict[str, int], falls: dict[str, float]) -> tuple[Verdict, str]:
    """Two parts: the Transformer recalls from farther away, and its gradient falls less with the distance.

    A recurrent model that recalls from nowhere may just have learned for too short a time.
    """
    words = "nine in ten tokens are recalled up to a distance of " + ", ".join(
        f"{reached} ({kind})" for kind, reached in reaches.items()
    )
    words += "; from the least to the greatest distance the gradient to the far token falls "
    words += ", ".join(f"{fall:,.3g}-fold ({kind})" for kind, fall in falls.items())
    if min(reaches["LSTM"], reaches["GRU"]) == 0:
        return "too short to tell", words
    return weighed(
        words,
        {
            "the Transformer recalls from farther away": reaches["Transformer"] > max(reaches["LSTM"], reaches["GRU"]),
            "its gradient falls less": falls["Transformer"] < min(falls["LSTM"], falls["GRU"]),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Every kind at every distance."""
    distances = bench.choose((8, 32, 64), (8, 16, 32, 64, 128, 256, 512))
    steps = bench.choose(150, 200)
    found: dict[str, list[list[dict[str, float]]]] = {kind: [] for kind in KINDS}
    rates = {kind: _rate(bench, kind, steps) for kind in KINDS}
    for kind in KINDS:
        for seed in bench.seeds:
            found[kind].append([_kept(bench, kind, distance, seed, steps, rates[kind]) for distance in distances])

    def column(kind: str, what: str) -> list[list[float]]:
        return [[each[what] for each in row] for row in found[kind]]

    means = {kind: [mean(each) for each in zip(*column(kind, "right"), strict=True)] for kind in KINDS}
    logs = {kind: [[math.log(each) for each in row] for row in column(kind, "gradient")] for kind in KINDS}
    falls = {kind: math.exp(mean([row[0] - row[-1] for row in logs[kind]])) for kind in KINDS}
    verdict, words = judge({kind: reach(distances, means[kind]) for kind in KINDS}, falls)
    return Evidence(
        f"the first token of a row is asked for at its end, {distances[0]} to {distances[-1]} tokens later; {LAYERS} "
        f"layers, {found['Transformer'][0][0]['parameters']:,.0f} parameters (LSTM "
        f"{found['LSTM'][0][0]['parameters']:,.0f}, GRU "
        f"{found['GRU'][0][0]['parameters']:,.0f}), {steps} steps at each distance, "
        "each kind at the best of three rates for distance "
        f"{PILOT_DISTANCE} ({told_rates(rates)})",
        verdict,
        words,
        tuple(
            number(f"recalled at distance {distance}, {kind}", [row[place] for row in column(kind, "right")])
            for kind in KINDS
            for place, distance in enumerate(distances)
            if place in (0, len(distances) // 2, len(distances) - 1)
        ),
        (
            Chart(
                "Recall",
                "distance",
                "share recalled",
                tuple(series(kind, distances, column(kind, "right")) for kind in KINDS),
                x_log=True,
            ),
            Chart(
                "Gradient from the output to the far token, at the first weights",
                "distance",
                "in that to the last token",
                tuple(series(kind, distances, column(kind, "gradient")) for kind in KINDS),
                x_log=True,
                y_log=True,
            ),
        ),
    )


def _rate(bench: Workbench, kind: str, steps: int) -> float:
    return best_rate(lambda rate: _kept(bench, kind, PILOT_DISTANCE, PILOT_SEED, steps, rate)["loss"])


def _kept(bench: Workbench, kind: str, distance: int, seed: int, steps: int, rate: float) -> dict[str, float]:
    def make() -> dict[str, float]:
        bench.tell(f"recall at distance {distance}: {kind}, seed {seed}")
        return run(kind, distance, seed, steps, rate)

    return bench.own.value("recall", [kind, distance, seed, steps, rate], make)
