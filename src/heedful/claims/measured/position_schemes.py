"""The same model with every position scheme: its loss, and its loss on text longer than in training."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, shown_loss, weighed
from heedful.claims.learning.text import counted_pairs_loss, held_out_windows
from heedful.claims.learning.text_trials import LENGTH, TextTrial, small_config, trained_model
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly

SCHEMES = ("sinusoidal", "learned", "rotary", "alibi", "relative_buckets", "none")
FACTORS, RATE = (1, 2, 4), 0.004
# Losses that differ by less than this share are nearly identical.
NEAR = 0.03


def losses_at_lengths(model: DecoderOnly) -> list[float]:
    """The held-out loss at each multiple of the training length; each scheme resizes its positions in its own way."""
    ids_BX, found = held_out_windows(FACTORS[-1] * LENGTH), []
    for factor in FACTORS:
        resized = copy.deepcopy(model)
        if factor > 1:
            resized.resize_positions(factor * LENGTH)
        found.append(loss_beyond(resized, ids_BX, LENGTH, factor))
    return found


@torch.no_grad()
def loss_beyond(model: nn.Module, ids_BX: Tensor, length: int, factor: int) -> float:
    """The loss of the same characters, those after the first `length` of each row, read in windows of `factor` lengths.

    In longer windows all of them lie beyond the trained length: what comes before it is read, but not counted. At the
    trained length itself, windows begin where the counted characters do.
    """
    start, counted = (length, length) if factor == 1 else (0, (factor - 1) * length)
    windows_NX = ids_BX[:, start:].unfold(1, factor * length + 1, counted).flatten(0, 1)
    logits_NTV = torch.cat([model(part[:, :-1])[:, -counted:] for part in windows_NX.split(32)])
    return shown_loss(float(F.cross_entropy(logits_NTV.flatten(0, 1), windows_NX[:, -counted:].flatten())))


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
    words = (
        f"sinusoidal and learned positions end at {sinusoidal[0]:.3f} and {learned[0]:.3f}; at twice the length "
        f"sinusoidal comes to {sinusoidal[1]:.3f}, learned (interpolated) to {learned[1]:.3f}; "
    )
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
            model = trained_model(bench, TextTrial(config, seed, steps, RATE))
            rows.append(losses_at_lengths(model))
        losses[scheme] = rows
    verdict, words = judge(losses)
    lengths = [factor * LENGTH for factor in FACTORS]
    return Evidence(
        f"2-layer models of characters, trained on windows of {LENGTH} for {steps} steps at a rate of {RATE:g}, "
        f"and read at {LENGTH}, {2 * LENGTH} and {4 * LENGTH}, where the same characters count at each length, in the "
        f"longer windows those beyond the first {LENGTH} alone; learned positions are interpolated, rotary angles "
        "squeezed",
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
