"""Table 3, rows A and B: the number of heads at the same cost, and narrower keys."""

from __future__ import annotations

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, small_config, tried
from heedful.claims.workbench import Workbench
from heedful.settings.attention import AttentionConfig

WIDTH = 64
HEADS = (1, 2, 4, 8, 16, 32)
KEY_HEADS = 4
KEY_WIDTHS = (2, 4, 8, WIDTH // KEY_HEADS)


def judge(by_heads: dict[int, list[float]], by_width: dict[int, list[float]]) -> tuple[Verdict, str]:
    """Three parts: one head is worse than the best number, so are the most heads, and the narrowest keys hurt."""
    best = min(by_heads, key=lambda count: mean(by_heads[count]))
    several = best > 1 and clearly_below(by_heads[best], by_heads[1])
    too_many = best < max(by_heads) and clearly_below(by_heads[best], by_heads[max(by_heads)])
    narrow = clearly_below(by_width[max(by_width)], by_width[min(by_width)])
    words = f"the best of {', '.join(map(str, by_heads))} heads are {best} with a loss of "
    words += f"{mean(by_heads[best]):.3f}; one head "
    words += (
        f"comes to {mean(by_heads[1]):.3f}, {max(by_heads)} heads to {mean(by_heads[max(by_heads)]):.3f}; with d_k "
    )
    words += f"{min(by_width)} in place of {max(by_width)} the loss is {mean(by_width[min(by_width)]):.3f} in place of "
    words += f"{mean(by_width[max(by_width)]):.3f}"
    if mean(by_heads[best]) > counted_pairs_loss():
        return "too short to tell", words
    held = several + too_many + narrow
    return ("holds" if held == 3 else "holds in part" if held else "does not hold at this size"), words


def measure(bench: Workbench) -> Evidence:
    """Models of text that differ only in their heads."""
    steps = bench.choose(100, 400)

    def losses(attention: AttentionConfig) -> list[float]:
        trials = [TextTrial(small_config(WIDTH, attention=attention), seed, steps) for seed in bench.seeds]
        return [tried(bench, trial).loss for trial in trials]

    by_heads = {count: losses(AttentionConfig(count)) for count in HEADS}
    by_width = {
        width: losses(AttentionConfig(KEY_HEADS, key_width=width, value_width=WIDTH // KEY_HEADS))
        for width in KEY_WIDTHS[:-1]
    }
    by_width[KEY_WIDTHS[-1]] = by_heads[KEY_HEADS]  # the same model
    verdict, words = judge(by_heads, by_width)

    def chart(title: str, label: str, found: dict[int, list[float]]) -> Chart:
        line = series("loss", list(found), list(zip(*found.values(), strict=True)))
        return Chart(title, label, "nats per character", (line,), x_log=True)

    return Evidence(
        f"2-layer models of characters of width {WIDTH}, {steps} steps: 1 to {HEADS[-1]} heads of d_k = {WIDTH} / "
        "heads; and "
        f"{KEY_HEADS} heads whose d_k is {KEY_WIDTHS[0]} to {KEY_WIDTHS[-1]}",
        verdict,
        words,
        (
            *(
                number(f"{count} heads, d_k {WIDTH // count}", found, "nats/character")
                for count, found in by_heads.items()
            ),
            *(number(f"{KEY_HEADS} heads, d_k {width}", found, "nats/character") for width, found in by_width.items()),
        ),
        (
            chart("Held-out loss against the heads", "heads", by_heads),
            chart("Held-out loss against d_k", "d_k", by_width),
        ),
    )
