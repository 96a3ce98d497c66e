"""Table 3, rows C, D and E: larger models, dropout, label smoothing, and learned positions."""

from __future__ import annotations

from dataclasses import replace

from heedful.claims.evidence import Chart, Evidence, Verdict, bars, clearly_below, mean, number, series, weighed
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextResult, TextTrial, small_config, tried, tuned
from heedful.claims.workbench import Workbench
from heedful.settings.decoder_only import DecoderOnlyConfig

# Few characters, read many times: this leaves something to overfit, as in 12 hours of the paper's training.
PORTION = 20_000
NEAR = 0.03
SHARES = (0.0, 0.1, 0.2)
SMALLER, LARGER = ("1 layer", "width 32", "inner 64"), ("4 layers", "width 128", "inner 512")


def judge(
    sizes: dict[str, list[float]], dropout: list[list[float]], smoothing: list[list[float]], learned: list[list[float]]
) -> tuple[Verdict, str]:
    """Four parts: losses by size; and losses (errors, for smoothing) of the plain and of the changed model."""
    means = {name: mean(found) for name, found in sizes.items()}
    parts = {
        "bigger is better": max(means[name] for name in LARGER) < means["base"] < min(means[name] for name in SMALLER),
        "dropout helps": clearly_below(dropout[1], dropout[0]),
        "label smoothing helps": clearly_below(smoothing[1], smoothing[0]),
        "learned positions are alike": abs(mean(learned[1]) / mean(learned[0]) - 1) < NEAR,
    }
    told = [
        f"larger models come to {_range(means, LARGER)}, the base to {means['base']:.3f}, smaller ones to "
        f"{_range(means, SMALLER)}",
        f"with little data dropout changes the loss from {mean(dropout[0]):.3f} to {mean(dropout[1]):.3f}",
        f"label smoothing changes the share of wrong characters from {mean(smoothing[0]):.1%} to "
        f"{mean(smoothing[1]):.1%}",
        f"learned positions come to {mean(learned[1]):.3f} in place of {mean(learned[0]):.3f}",
    ]
    if min(means.values()) > counted_pairs_loss():
        return "too short to tell", "; ".join(told)
    return weighed("; ".join(told), parts)


def configs_by_size() -> dict[str, DecoderOnlyConfig]:
    """The base model, and models that are larger or smaller in one way each."""
    return {
        "1 layer": small_config(layers=1),
        "base": small_config(),
        "4 layers": small_config(layers=4),
        "width 32": small_config(32),
        "width 128": small_config(128),
        "inner 64": small_config(inner_width=64),
        "inner 512": small_config(inner_width=512),
    }


def measure(bench: Workbench) -> Evidence:
    """Models of text that differ in one thing each."""
    steps, rates = bench.choose(100, 300), {}

    def runs(
        name: str, config: DecoderOnlyConfig, smoothing: float = 0.0, portion: int | None = None
    ) -> list[TextResult]:
        best = tuned(bench, TextTrial(config, 0, steps, smoothing=smoothing, portion=portion))
        rates[name] = best.learning_rate
        return [tried(bench, replace(best, seed=seed)) for seed in bench.seeds]

    sizes = {name: runs(name, config) for name, config in configs_by_size().items()}
    dropped = {
        f"{share:g}": runs(f"dropout {share:g}", small_config(dropout=share), portion=PORTION) for share in SHARES
    }
    smoothed = {f"{share:g}": runs(f"smoothing {share:g}", small_config(), share, PORTION) for share in SHARES}
    positions = {
        scheme: runs(scheme, small_config(positions=scheme, scaled_embedding=True))
        for scheme in ("sinusoidal", "learned")
    }
    wrong = {name: [1 - each.accuracy for each in found] for name, found in smoothed.items()}
    verdict, words = judge(
        {name: _losses(found) for name, found in sizes.items()},
        [_losses(dropped["0"]), _losses(dropped["0.1"])],
        [wrong["0"], wrong["0.1"]],
        [_losses(found) for found in positions.values()],
    )
    numbers = [number(f"C: {name}", _losses(found), "nats/character") for name, found in sizes.items()]
    numbers += [number(f"D: dropout {name}", _losses(found), "nats/character") for name, found in dropped.items()]
    numbers += [number(f"D: label smoothing {name}, wrong", found) for name, found in wrong.items()]
    numbers += [
        number(f"D: label smoothing {name}", _losses(found), "nats/character") for name, found in smoothed.items()
    ]
    numbers += [number(f"E: {name} positions", _losses(found), "nats/character") for name, found in positions.items()]
    return Evidence(
        f"models of characters, {steps} steps, each kind at the best of three rates ({told_rates(rates)}); the base "
        "has 2 layers, width 64 and inner width 256; dropout and label smoothing on "
        f"{PORTION:,} characters, which are read {steps * 16 * 64 // PORTION} times",
        verdict,
        words,
        tuple(numbers),
        (
            _chart("C: the size of the model", {name: _losses(found) for name, found in sizes.items()}),
            _chart("D: dropout, with little data", {name: _losses(found) for name, found in dropped.items()}),
            _chart("D: label smoothing, with little data", wrong, "share of wrong characters"),
            _chart("E: positions", {name: _losses(found) for name, found in positions.items()}),
        ),
    )


def _losses(found: list[TextResult]) -> list[float]:
    return [each.loss for each in found]


def _chart(title: str, found: dict[str, list[float]], unit: str = "nats per character") -> Chart:
    return bars(
        title, unit, list(found), [series("held out", range(len(found)), list(zip(*found.values(), strict=True)))]
    )


def _range(means: dict[str, float], names: tuple[str, ...]) -> str:
    found = [means[name] for name in names]
    return f"{min(found):.3f} to {max(found):.3f}"
