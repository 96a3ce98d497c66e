"""Full self-attention against attention within a window: quality on text and over distances, and time against n."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, weighed
from heedful.claims.learning.blocked_attention import attend_in_blocks
from heedful.claims.learning.course import Course, learn
from heedful.claims.learning.text import counted_pairs_loss, held_out_scores
from heedful.claims.learning.text_trials import RATE, TextTrial, build, learn_text, small_config
from heedful.claims.measured.complexity import seconds_at
from heedful.claims.measured.long_range import VOCABULARY, recall_rows
from heedful.claims.workbench import Workbench
from heedful.layers.multi_head_attention import SelfAttention
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.stack import StackConfig

LENGTH, DISTANCE, RECALL_RATE = 128, 32, 0.003
# The window that stands for all local ones: its quality on text and its time are judged.
WINDOW = 32
# Two layers with a window of w reach 2 (w - 1) tokens back: the first is just too little for the distance, the second
# just enough.
BLIND, SEEING = DISTANCE // 2, DISTANCE // 2 + 1


def set_window(model: DecoderOnly, window: int | None) -> DecoderOnly:
    """Limit all layers of a model to positions fewer than `window` away."""
    for block in model.blocks:
        block.attention.window = window
    return model


def recalled(window: int | None, seed: int, steps: int) -> float:
    """How often a token is recalled over a distance, after training with a window in both layers."""
    torch.manual_seed(seed)
    stack = StackConfig(2, "pre", 0.0, AttentionConfig(4))
    model = set_window(DecoderOnly(DecoderOnlyConfig(VOCABULARY, 48, DISTANCE + 1, "rotary", stack=stack)), window)

    def loss(step: int) -> Tensor:
        ids_BT, answers_B = recall_rows(DISTANCE, 16, (seed, step + 1))
        return F.cross_entropy(model(ids_BT)[:, -1], answers_B)

    learn(model, loss, Course(steps, RECALL_RATE))
    with torch.no_grad():
        ids_BT, answers_B = recall_rows(DISTANCE, 200, (0, DISTANCE))
        return float((model(ids_BT)[:, -1].argmax(-1) == answers_B).float().mean())


def times_at(lengths: tuple[int, ...], repeats: int) -> dict[str, list[float]]:
    """Seconds that a layer takes at each length: full, a window as a mask, and a window in blocks."""
    torch.manual_seed(1)
    full, masked = SelfAttention(64, AttentionConfig(4)), SelfAttention(64, AttentionConfig(4), window=WINDOW)
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "full": full,
        "window, as a mask": masked,
        "window, in blocks": lambda x: attend_in_blocks(full, x, WINDOW, causal=False),
    }
    return {name: [seconds_at(call, length, 2, repeats) for length in lengths] for name, call in calls.items()}


def judge(losses: dict[int, list[float]], recall: dict[int, float], faster: float) -> tuple[Verdict, str]:
    """Three parts: a window saves time on long sequences, costs little on text, and recalls as far as its paths reach.

    The dicts' keys are windows; the greatest is the whole sequence. The narrower of both windows around the reach
    must fail, since no path leads to the token, but the wider one must learn a path of two steps: there is just one.
    """
    full = max(losses)
    ends = {window: mean(found) for window, found in losses.items()}
    words = "the loss of text is " + ", ".join(f"{end:.3f} (window {window})" for window, end in ends.items())
    words += f"; over {DISTANCE} tokens, " + ", ".join(
        f"{share:.0%} (window {window})" for window, share in recall.items()
    )
    words += f" are recalled; on the longest sequence a window computed in blocks takes 1/{faster:.1f} of the time"
    if recall[max(recall)] <= 0.9 or ends[full] > counted_pairs_loss():
        return "too short to tell", words
    found = recall[BLIND] < 0.5 < recall[SEEING]
    return weighed(
        words,
        {
            "a window is cheaper for long sequences": faster > 1,
            f"a window of {WINDOW} costs text at most 2%": ends[WINDOW] < 1.02 * ends[full],
            f"two layers recall over {DISTANCE} tokens with a window of {SEEING}, not of {BLIND}": found,
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Models of text and of recall with each window, and layers at several lengths."""
    windows = bench.choose((2, WINDOW, LENGTH), (2, 4, 8, 16, WINDOW, 64, LENGTH))
    steps, recall_steps = bench.choose(200, 400), bench.choose(150, 300)
    losses = {window: [_text(bench, window, seed, steps) for seed in bench.seeds] for window in windows}
    recall_windows = bench.choose([BLIND, SEEING, DISTANCE + 1], [4, BLIND, SEEING, DISTANCE + 1])
    recall = {window: [_recall(bench, window, seed, recall_steps) for seed in bench.seeds] for window in recall_windows}
    lengths = bench.choose((256, 1024, 2048), (256, 512, 1024, 2048, 4096))
    times = bench.own.value("times", list(lengths), lambda: times_at(lengths, bench.choose(2, 5)))
    faster = times["full"][-1] / times["window, in blocks"][-1]
    verdict, words = judge(losses, {window: mean(found) for window, found in recall.items()}, faster)
    return Evidence(
        f"2-layer models of characters on windows of {LENGTH} for {steps} steps at a rate of {RATE:g}, all layers "
        f"held to a window; recall over {DISTANCE} tokens, {recall_steps} steps at a rate of {RECALL_RATE:g}; a layer "
        f"of width 64 with a window of {WINDOW}, forward and backward",
        verdict,
        words,
        (
            *(number(f"held-out loss, window {window}", found, "nats/character") for window, found in losses.items()),
            *(number(f"recalled over {DISTANCE} tokens, window {window}", found) for window, found in recall.items()),
            *(
                number(f"time at {lengths[-1]} positions, {name}", [1e3 * found[-1]], "ms")
                for name, found in times.items()
            ),
        ),
        (
            Chart(
                "Held-out loss against the window",
                "window",
                "nats per character",
                (series("loss", windows, list(zip(*losses.values(), strict=True))),),
                x_log=True,
            ),
            Chart(
                "Time of a layer",
                "positions n",
                "ms",
                tuple(series(name, lengths, [[1e3 * each for each in found]]) for name, found in times.items()),
                True,
                True,
            ),
        ),
    )


def _text(bench: Workbench, window: int, seed: int, steps: int) -> float:
    def make() -> float:
        bench.tell(f"text with a window of {window}, seed {seed}")
        trial = TextTrial(small_config(length=LENGTH), seed, steps, length=LENGTH, rows=8)
        model = set_window(build(trial), None if window >= LENGTH else window)
        learn_text(model, trial)
        return held_out_scores(model, LENGTH)[0]

    return bench.own.value("text", [window, seed, steps], make)


def _recall(bench: Workbench, window: int, seed: int, steps: int) -> float:
    def make() -> float:
        bench.tell(f"recall with a window of {window}, seed {seed}")
        return recalled(None if window > DISTANCE else window, seed, steps)

    return bench.own.value("recall", [window, seed, steps], make)
