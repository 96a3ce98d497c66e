"""Table 3, rows A and B: the number of heads at the same cost, and narrower keys."""

from __future__ import annotations

from dataclasses import replace

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, weighed
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, small_config, tried, tuned
from heedful.claims.workbench import Workbench
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig

WIDTH = 64
HEADS = (1, 2, 4, 8, 16, 32)
# The base of these models, as 8 is that of Table 3: the number that stands for several heads, whichever is best.
KEY_HEADS = 4
KEY_WIDTHS = (2, 4, 8, WIDTH // KEY_HEADS)


def judge(by_heads: dict[int, list[float]], by_width: dict[int, list[float]]) -> tuple[Verdict, str]:
    """Three parts: one head is worse than several, so are the most heads, and the narrowest keys hurt."""
    several, most = by_heads[KEY_HEADS], by_heads[max(by_heads)]
    words = (
        f"{KEY_HEADS} heads come to a loss of {mean(several):.3f}, one head to {mean(by_heads[1]):.3f}, "
        f"{max(by_heads)} heads to {mean(most):.3f}; with d_k {min(by_width)} in place of {max(by_width)} the loss is "
        f"{mean(by_width[min(by_width)]):.3f} in place of {mean(by_width[max(by_width)]):.3f}"
    )
    if mean(several) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(
        words,
        {
            "several heads are better than one": clearly_below(several, by_heads[1]),
            "too many are worse": clearly_below(several, most),
            "a small d_k hurts": clearly_below(by_width[max(by_width)], by_width[min(by_width)]),
        },
    )


def model_with(attention: AttentionConfig) -> DecoderOnlyConfig:
    """A model with such heads; positions are added to its embeddings, so that narrow keys do not take them away."""
    return small_config(WIDTH, positions="sinusoidal", scaled_embedding=True, attention=attention)


def heads_named(count: int) -> str:
    """So many heads, in words."""
    return "1 head" if count == 1 else f"{count} heads"


def measure(bench: Workbench) -> Evidence:
    """Models of text that differ only in their heads."""
    steps, rates = bench.choose(100, 300), {}

    def losses(name: str, attention: AttentionConfig) -> list[float]:
        best = tuned(bench, TextTrial(model_with(attention), 0, steps))
        rates[name] = best.learning_rate
        return [tried(bench, replace(best, seed=seed)).loss for seed in bench.seeds]

    by_heads = {count: losses(heads_named(count), AttentionConfig(count)) for count in HEADS}
    by_width = {
        width: losses(f"d_k {width}", AttentionConfig(KEY_HEADS, key_width=width, value_width=WIDTH // KEY_HEADS))
        for width in KEY_WIDTHS[:-1]
    }
    by_width[KEY_WIDTHS[-1]] = by_heads[KEY_HEADS]  # the same model
    verdict, words = judge(by_heads, by_width)

    def chart(title: str, label: str, found: dict[int, list[float]]) -> Chart:
        line = series("loss", list(found), list(zip(*found.values(), strict=True)))
        return Chart(title, label, "nats per character", (line,), x_log=True)

    return Evidence(
        f"2-layer models of characters of width {WIDTH}, with the paper's positions added to scaled embeddings, so "
        f"that they take no part of d_k; {steps} steps each, each kind at the best of three rates "
        f"({told_rates(rates)}): 1 to {HEADS[-1]} heads of d_k = {WIDTH} / heads; and {KEY_HEADS} heads whose d_k "
        f"is {KEY_WIDTHS[0]} to {KEY_WIDTHS[-1]}",
        verdict,
        words,
        (
            *(
                number(f"{heads_named(count)}, d_k {WIDTH // count}", found, "nats/character")
                for count, found in by_heads.items()
            ),
            *(number(f"{KEY_HEADS} heads, d_k {width}", found, "nats/character") for width, found in by_width.items()),
        ),
        (
            chart("Held-out loss against the heads", "heads", by_heads),
            chart("Held-out loss against d_k", "d_k", by_width),
        ),
    )
