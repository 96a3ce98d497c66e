"""Rules against repetition: tokens that a hypothesis already has become less likely, and no n-gram is repeated."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from heedful.decoding.options import DecodingOptions


def against_repetition(
    logits_V: Tensor, peak: Tensor, log_peak: Tensor, text: Sequence[int], options: DecodingOptions
) -> None:
    """Adjust the logits of a row, in place, for the tokens before it; the log-probability of `peak` is `log_peak`."""
    if options.repetition_penalty != 1.0:
        tokens = sorted(set(text))
        log_probabilities = (logits_V[tokens] - peak) + log_peak
        logits_V[tokens] = log_probabilities * options.repetition_penalty - log_peak + peak
    size = options.no_repeat_ngram
    if size and len(text) >= size:
        last = list(text[len(text) - size + 1 :])
        starts = range(len(text) - size + 1)
        repeated = {text[start + size - 1] for start in starts if list(text[start : start + size - 1]) == last}
        logits_V[sorted(repeated)] = -float("inf")
