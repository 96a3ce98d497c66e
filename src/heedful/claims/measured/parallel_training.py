"""Whether training without recurrence is faster: tokens per second, and the loss over seconds and over steps."""

from __future__ import annotations

from typing import Any

import torch

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, mean_loss, number, series, weighed
from heedful.claims.learning.course import PILOT_SEED, best_rate, told_rates
from heedful.claims.learning.recurrent_text import RecurrentReader, width_for
from heedful.claims.learning.text import counted_pairs_loss, held_out_scores, reference_text
from heedful.claims.learning.text_trials import TextTrial, build, learn_text, small_config
from heedful.claims.workbench import Workbench

KINDS = ("Transformer", "LSTM", "GRU")
LENGTH, ROWS, POINTS = 128, 8, 20


def loss_at(losses: list[float], places: list[float], wanted: list[float]) -> list[float]:
    """The mean loss of the steps up to each wanted place and after the one before it; the last loss beyond the end."""
    found, start = [], 0
    for end in wanted:
        stop = start
        while stop < len(places) and places[stop] <= end:
            stop += 1
        part = losses[start:stop] or [losses[min(start, len(losses) - 1)]]
        found.append(mean(part))
        start = stop
    return found


def new_model(kind: str, trial: TextTrial) -> torch.nn.Module:
    """A model of a kind; all kinds have about the same number of parameters."""
    transformer = build(trial)
    if kind == "Transformer":
        return transformer
    parameters = sum(each.numel() for each in transformer.parameters())
    vocabulary, cell = reference_text().vocabulary_size, kind.lower()
    torch.manual_seed(trial.seed)
    return RecurrentReader(vocabulary, width_for(parameters, vocabulary, 2, cell), 2, cell)  # type: ignore[arg-type]


def trial_of(seed: int, steps: int, rate: float) -> TextTrial:
    """How models of all kinds learn."""
    return TextTrial(small_config(length=LENGTH), seed, steps, rate, length=LENGTH, rows=ROWS)


def run(kind: str, seed: int, seconds: float, rate: float) -> dict[str, Any]:
    """Train a model for some seconds: its losses, times and speed, and its held-out loss at the end."""
    trial = trial_of(seed, 100_000, rate)
    model = new_model(kind, trial)
    learned = learn_text(model, trial, seconds)
    return {
        "losses": learned.losses[: len(learned.seconds)],
        "seconds": learned.seconds,
        "speed": len(learned.seconds) * LENGTH * ROWS / learned.seconds[-1],
        "loss": held_out_scores(model, LENGTH)[0],
        "parameters": sum(each.numel() for each in model.parameters()),
    }


def judge(
    speed: dict[str, list[float]], loss: dict[str, list[float]], by_step: dict[str, float]
) -> tuple[Verdict, str]:
    """Two parts: more tokens per second than either recurrent model, and a lower loss after the same time.

    `by_step` holds training losses after as many steps, which say what one step is worth, not what it costs.
    """
    words = "tokens per second: " + ", ".join(f"{mean(each):,.0f} ({kind})" for kind, each in speed.items())
    words += "; held-out loss after the same time: " + ", ".join(
        f"{mean(each):.3f} ({kind})" for kind, each in loss.items()
    )
    words += "; training loss after as many steps: " + ", ".join(
        f"{each:.3f} ({kind})" for kind, each in by_step.items()
    )
    if mean(loss["Transformer"]) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(
        words,
        {
            "more tokens per second": all(clearly_below(speed[kind], speed["Transformer"]) for kind in KINDS[1:]),
            "a lower loss after the same time": all(
                clearly_below(loss["Transformer"], loss[kind]) for kind in KINDS[1:]
            ),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Models of about as many parameters, the same batches, the same time; and once more as many steps."""
    seconds, steps = bench.choose(5.0, 12.0), bench.choose(60, 200)
    rates = {kind: _rate(bench, kind, seconds / 4) for kind in KINDS}
    found = {kind: [_kept(bench, kind, seed, seconds, rates[kind]) for seed in bench.seeds] for kind in KINDS}
    times = [seconds * (place + 1) / POINTS for place in range(POINTS)]
    over_time = {
        kind: [loss_at(each["losses"], each["seconds"], times) for each in runs] for kind, runs in found.items()
    }
    over_steps = {kind: [_by_steps(bench, kind, seed, steps, rates[kind]) for seed in bench.seeds] for kind in KINDS}
    places = [steps * (place + 1) / len(over_steps[KINDS[0]][0]) for place in range(len(over_steps[KINDS[0]][0]))]
    speed = {kind: [each["speed"] for each in runs] for kind, runs in found.items()}
    loss = {kind: [each["loss"] for each in runs] for kind, runs in found.items()}
    verdict, words = judge(speed, loss, {kind: mean([row[-1] for row in rows]) for kind, rows in over_steps.items()})
    sizes = ", ".join(f"{kind} {runs[0]['parameters']:,}" for kind, runs in found.items())
    return Evidence(
        f"models of characters of 2 layers ({sizes} parameters), {ROWS} windows of {LENGTH} per step, {seconds:g} "
        f"seconds each, each kind at the best of three rates ({told_rates(rates)}), which falls with the time; and "
        f"once more {steps} steps each, over which it falls",
        verdict,
        words,
        (
            *(number(f"speed, {kind}", each, "tokens/s") for kind, each in speed.items()),
            *(
                number(f"held-out loss after {seconds:g} s, {kind}", each, "nats/character")
                for kind, each in loss.items()
            ),
        ),
        (
            Chart(
                f"Over {seconds:g} seconds",
                "seconds",
                "training loss",
                tuple(series(kind, times, rows) for kind, rows in over_time.items()),
            ),
            Chart(
                f"Over {steps} steps",
                "step",
                "training loss",
                tuple(series(kind, places, rows) for kind, rows in over_steps.items()),
            ),
        ),
    )


def _rate(bench: Workbench, kind: str, seconds: float) -> float:
    return best_rate(lambda rate: mean_loss(_kept(bench, kind, PILOT_SEED, seconds, rate)["losses"][-10:]))


def _by_steps(bench: Workbench, kind: str, seed: int, steps: int, rate: float) -> list[float]:
    def make() -> list[float]:
        bench.tell(f"{kind}, seed {seed}, {steps} steps")
        trial = trial_of(seed, steps, rate)
        return learn_text(new_model(kind, trial), trial).curve

    return bench.own.value("steps", [kind, seed, steps, rate], make)


def _kept(bench: Workbench, kind: str, seed: int, seconds: float, rate: float) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        bench.tell(f"{kind}, seed {seed}, {seconds:g} seconds")
        return run(kind, seed, seconds, rate)

    return bench.own.value("run", [kind, seed, seconds, rate], make)
