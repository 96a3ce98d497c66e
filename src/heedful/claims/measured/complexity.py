"""The time of a layer by the length of its sequence: attention, attention in a window, recurrence, convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, fitted_power, number, series, weighed
from heedful.claims.learning.blocked_attention import attend_in_blocks
from heedful.claims.learning.clock import seconds_now
from heedful.claims.workbench import Workbench
from heedful.layers.convolutions import Neighbourhood
from heedful.layers.multi_head_attention import SelfAttention
from heedful.layers.recurrent import RecurrentLayer
from heedful.settings.attention import AttentionConfig

WIDTH, WINDOW, KERNEL = 64, 32, 7
# From Table 1: the power of n in each layer's number of operations.
POWERS = {"self-attention": 2.0, "self-attention in a window": 1.0, "LSTM": 1.0, "convolution": 1.0}


def layer_calls() -> dict[str, Callable[[Tensor], Tensor]]:
    """A layer of each kind, to be called with a batch B T D."""
    torch.manual_seed(1)
    attention = SelfAttention(WIDTH, AttentionConfig(4))
    recurrent = RecurrentLayer(WIDTH, WIDTH, "lstm")
    convolution = Neighbourhood(WIDTH, KERNEL)
    return {
        "self-attention": attention,
        "self-attention in a window": lambda x: attend_in_blocks(attention, x, WINDOW, causal=False),
        "LSTM": recurrent,
        "convolution": lambda x: convolution(x, torch.full((len(x),), x.shape[1])),
    }


def seconds_at(call: Callable[[Tensor], Tensor], length: int, rows: int, repeats: int) -> float:
    """The least time of several forward and backward passes at a length, after one that does not count."""
    x_BTD = torch.randn(rows, length, WIDTH, requires_grad=True)
    found = []
    for _ in range(repeats + 1):
        began = seconds_now()
        call(x_BTD).sum().backward()
        found.append(seconds_now() - began)
    return min(found[1:])


def crossing(lengths: Sequence[float], these: Sequence[float], those: Sequence[float]) -> float | None:
    """The length from which the first take longer than the second, interpolated; None if there is none."""
    above = [math.log(a / b) for a, b in zip(these, those, strict=True)]
    for place in range(len(above) - 1, 0, -1):
        if above[place] > 0 >= above[place - 1]:
            share = -above[place - 1] / (above[place] - above[place - 1])
            return float(lengths[place - 1] * (lengths[place] / lengths[place - 1]) ** share)
    return None


def judge(exponents: dict[str, float], crossed: float | None, spread: float) -> tuple[Verdict, str]:
    """Parts: each fitted exponent is closer to Table 1's than to the other power; and LSTMs wait for each step.

    `spread` is how many times longer an LSTM takes for the same number of tokens in long rows than in short ones, in
    units of what a convolution does, which does not wait: so caches, which like some shapes better, make no difference.
    """
    words = "the time of a long layer grows as n to the power " + ", ".join(
        f"{value:.2f} ({name})" for name, value in exponents.items()
    )
    where = "nowhere in this range" if crossed is None else f"from about {crossed:,.0f} positions on"
    words += (
        f"; self-attention is slower than the LSTM {where}. For the same number of tokens, one long row costs the LSTM "
        f"{spread:.1f} times what many short rows do, relative to a convolution"
    )
    parts = {f"power {power:g} for {name}": abs(exponents[name] - power) < 0.5 for name, power in POWERS.items()}
    return weighed(words, {**parts, "the steps of the LSTM wait for each other": spread > 1.5})


def relative_spread(steps: dict[str, list[float]]) -> float:
    """How much longer the LSTM takes for the longest rows than for the shortest, over how much the convolution does."""
    grown = {name: found[-1] / found[0] for name, found in steps.items()}
    return grown["LSTM"] / grown["convolution"]


def measure(bench: Workbench) -> Evidence:
    """All layers at all lengths."""
    lengths = bench.choose((128, 256, 512, 1024, 2048), (128, 256, 512, 1024, 2048, 4096))
    repeats = bench.choose(2, 5)
    times = {}
    for name, call in layer_calls().items():
        bench.tell(f"the time of {name}")
        times[name] = [seconds_at(call, length, 2, repeats) for length in lengths]
    exponents = {name: fitted_power(lengths[-3:], found[-3:]) for name, found in times.items()}
    tokens = 4096
    shapes = (64, 256, 1024)
    steps = {
        name: [seconds_at(call, length, tokens // length, repeats) for length in shapes]
        for name, call in layer_calls().items()
    }
    crossed = crossing(lengths, times["self-attention"], times["LSTM"])
    verdict, words = judge(exponents, crossed, relative_spread(steps))
    return Evidence(
        f"one layer of width {WIDTH}, 2 rows of {lengths[0]} to {lengths[-1]} positions, forward and backward, the "
        "least of "
        f"{repeats} times; a window of {WINDOW} computed in blocks, a kernel of {KERNEL}; exponents from the longest "
        "three",
        verdict,
        words,
        (
            *(
                number(f"exponent of n, {name} (Table 1: {POWERS[name]:g})", [value])
                for name, value in exponents.items()
            ),
            *(
                []
                if crossed is None
                else [number("self-attention is slower than the LSTM from", [crossed], "positions")]
            ),
            *(
                number(f"time at {lengths[-1]} positions, {name}", [1e3 * found[-1]], "ms")
                for name, found in times.items()
            ),
        ),
        (
            Chart(
                "Time of a layer, forward and backward",
                "positions n",
                "ms",
                tuple(series(name, lengths, [[1e3 * each for each in found]]) for name, found in times.items()),
                x_log=True,
                y_log=True,
            ),
            Chart(
                f"The same {tokens:,} tokens in fewer, longer rows",
                "positions per row",
                "ms",
                tuple(series(name, shapes, [[1e3 * each for each in found]]) for name, found in steps.items()),
                x_log=True,
                y_log=True,
            ),
        ),
    )
