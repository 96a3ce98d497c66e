"""The same model with every position scheme: its loss, and its loss on text longer than in training."""

from __future__ import annotations

import copy

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, weighed
from heedful.claims.learning.text import counted_pairs_loss, held_out_scores
from heedful.claims.learning.text_trials import LENGTH, TextTrial, small_config, trained_model
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly

SCHEMES = ("sinusoidal", "learned", "rotary", "alibi", "relative_buckets", "none")
FACTORS = (1, 2, 4)
# Losses that differ by less than this share are nearly identical.
NEAR = 0.03


def losses_at_lengths(model: DecoderOnly) -> list[float]:
    """The held-out loss at each multiple of the training length; each scheme resizes its positions in its own way."""
    found = []
    for factor in FACTORS:
        resized = copy.deepcopy(model)
        if factor > 1:
            resized.resize_positions(factor * LENGTH)
        found.append(held_out_scores(resized, factor * LENGTH)[0])
    return found


def judge(losses: dict[str, list[list[float]]]) -> tuple[Verdict, str]:
    """Two parts: sinusoidal and learned are nearly identical; sinusoidal loses at most a tenth at twice the length.

    `losses` holds a row of losses at all lengths for each seed.
    """
    means = {name: [mean(column) for column in zip(*rows, strict=True)] for name, rows in losses.items()}
    sinusoidal, learned = means["sinusoidal"], means["learned"]
    parts = {
        "nearly identical": abs(sinusoidal[0] / learned[0] - 1) < NEAR,
        "sinusoidal positions extend": sinusoidal[1] < 1.1 * sinusoidal[0],
    }
    words = f"sinusoidal and learned positions end at {sinusoidal[0]:.3f} and {learned[0]:.3f}; at twice the length "
    words += "sinusoidal "
    words += f"comes to {sinusoidal[1]:.3f}, learned (interpolated) to {learned[1]:.3f}; "
    best = min(means, key=lambda name: means[name][-1])
    words += f"at {FACTORS[-1]} times the length {best} is best with {means[best][-1]:.3f}"
    if sinusoidal[0] > counted_pairs_loss():
        return "too short to tell", words
    return weighed(words, parts)


def measure(bench: Workbench) -> Evidence:
    """Models that differ only in their positions."""
    steps = bench.choose(350, 400)
    schemes = bench.choose(("sinusoidal", "learned", "alibi"), SCHEMES)
    losses: dict[str, list[list[float]]] = {}
    for scheme in schemes:
        rows = []
        for seed in bench.seeds:
            # Sinusoids are as large as scaled embeddings, which the paper uses.
            config = small_config(positions=scheme, scaled_embedding=True)
            model = trained_model(bench, TextTrial(config, seed, steps, 0.004))
            rows.append(losses_at_lengths(model))
        losses[scheme] = rows
    verdict, words = judge(losses)
    lengths = [factor * LENGTH for factor in FACTORS]
    return Evidence(
        f"2-layer models of characters, trained on windows of {LENGTH} for {steps} steps, and read at {LENGTH}, "
        f"{2 * LENGTH} "
        f"and {4 * LENGTH}; learned positions are interpolated there, rotary angles squeezed",
        verdict,
        words,
        tuple(
            number(f"{scheme}, length {length}", [row[place] for row in losses[scheme]], "nats/character")
            for scheme in schemes
            for place, length in enumerate(lengths)
        ),
        (
            Chart(
                "Held-out loss against the length of the text",
                "characters",
                "nats per character",
                tuple(series(scheme, lengths, losses[scheme]) for scheme in schemes),
                x_log=True,
            ),
        ),
    )
