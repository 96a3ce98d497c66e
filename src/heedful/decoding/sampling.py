"""Sampling: each sample is a separate row, drawn with random numbers that belong to it alone."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heedful.decoding.options import SamplingOptions
from heedful.decoding.slots import Children, Slots
from heedful.decoding.token_scores import BLOCK, TokenScores, top_tokens
from heedful.splitmix import GOLDEN_GAMMA, mix

# How many of the likeliest tokens are tried first in the search for the smallest set that makes up `top_p`.
FIRST_GUESS = 64


class Sampler:
    """Draws the next token of every row from the model's distribution, as modified by the options."""

    def __init__(self, options: SamplingOptions, samples: int) -> None:
        self.options = options
        self.first_rows = samples

    def choose(self, scores: TokenScores, slots: Slots) -> Children:
        """One continuation of every running row; its scores are the model's own, at temperature 1."""
        totals_NK = slots.totals[: slots.used]
        sentences = slots.sentences[: slots.used]
        uniform_NK = uniform(
            sentences["seed"][:, None], sentences["number"][:, None], slots.own_rows, sentences["length"][:, None]
        )
        columns_A1 = self.draw(scores.logits_AV, uniform_NK.reshape(-1)[scores.rows_A])[:, None]
        scores_NK = scores.spread(scores.log_probabilities(columns_A1), totals_NK.shape, -np.inf)
        return Children(
            np.broadcast_to(slots.own_rows, totals_NK.shape),
            scores.spread(scores.tokens(columns_A1), totals_NK.shape, slots.end),
            scores_NK,
            totals_NK + scores_NK,
        )

    def draw(self, logits_RV: Tensor, uniform_R: NDArray[np.float64]) -> Tensor:
        """A token per row, chosen by a uniform number in [0, 1)."""
        probabilities_RV = _softmax(logits_RV, self.options.temperature)
        size = logits_RV.shape[1]
        top_k = min(self.options.top_k or size, size)
        if self.options.top_p is not None and self.options.top_p < 1.0:
            return self._draw_from_nucleus(logits_RV, probabilities_RV, uniform_R, top_k)
        if top_k < size:
            tokens_RC = top_tokens(logits_RV, top_k)
            return _pick(tokens_RC, probabilities_RV.gather(1, tokens_RC), uniform_R)
        return _draw_from_all(probabilities_RV, uniform_R)

    def _draw_from_nucleus(
        self, logits_RV: Tensor, probabilities_RV: Tensor, uniform_R: NDArray[np.float64], top_k: int
    ) -> Tensor:
        """Draw from the smallest set of likeliest tokens that makes up `top_p` of the `top_k` likeliest."""
        assert self.options.top_p is not None
        limited = top_k < logits_RV.shape[1]
        guess = top_k if limited else min(FIRST_GUESS, top_k)
        drawn_R = torch.zeros(len(logits_RV), dtype=torch.long, device=logits_RV.device)
        rows_R = torch.arange(len(logits_RV), device=logits_RV.device)
        # Most rows need few tokens; those that need more are tried again with more.
        while len(rows_R):
            tokens_RC = top_tokens(logits_RV[rows_R], guess)
            weights_RC = probabilities_RV[rows_R].gather(1, tokens_RC).cpu().double()
            sums_RC = weights_RC.cumsum(1)
            wanted_R1 = self.options.top_p * (sums_RC[:, -1:] if limited else 1.0)
            inside = sums_RC - weights_RC < wanted_R1
            drawn_R[rows_R] = _pick(tokens_RC, weights_RC * inside, uniform_R[rows_R.cpu().numpy()])
            if guess == top_k:
                break
            short_R = (sums_RC[:, -1:] < wanted_R1)[:, 0].to(rows_R.device)
            rows_R, guess = rows_R[short_R], min(8 * guess, top_k)
        return drawn_R


def _softmax(logits_RV: Tensor, temperature: float) -> Tensor:
    if temperature == 1.0:
        return logits_RV.softmax(-1)
    # Relative to the peak: a low temperature must not push the logits out of range.
    return (logits_RV - logits_RV.amax(-1, keepdim=True)).div_(temperature).softmax(-1)


def _draw_from_all(probabilities_RV: Tensor, uniform_R: NDArray[np.float64]) -> Tensor:
    """Draw a block of tokens, then a token of the block: running sums over the whole vocabulary are slow."""
    rows, size = probabilities_RV.shape
    padded = F.pad(probabilities_RV, (0, -size % BLOCK)) if size % BLOCK else probabilities_RV
    padded = padded.view(rows, -1, BLOCK)
    sums = padded.sum(-1).cpu().double().numpy().cumsum(1)
    target_R = uniform_R * sums[:, -1]
    block_R = (sums <= target_R[:, None]).sum(1)
    every_R = np.arange(rows)
    before_R = np.where(block_R > 0, sums[every_R, block_R - 1], 0.0)
    share_R = (target_R - before_R) / (sums[every_R, block_R] - before_R)
    blocks_R = torch.from_numpy(block_R).to(padded.device)
    tokens_RC = blocks_R[:, None] * BLOCK + torch.arange(BLOCK, device=padded.device)
    weights_RC = padded[torch.arange(rows, device=padded.device), blocks_R]
    return _pick(tokens_RC, weights_RC, share_R)


def _pick(tokens_RC: Tensor, weights_RC: Tensor, uniform_R: NDArray[np.float64]) -> Tensor:
    """The token of each row at which the running sum of the weights first exceeds that share of their sum."""
    sums = weights_RC.cpu().double().numpy().cumsum(1)
    # A share of 1, which rounding can produce, would fall after the last token.
    target_R = np.minimum(uniform_R, 1.0 - 2.0**-52) * sums[:, -1]
    chosen_R = torch.from_numpy((sums <= target_R[:, None]).sum(1)).to(tokens_RC.device)
    return tokens_RC.gather(1, chosen_R[:, None])[:, 0]


def uniform(
    seed: int | NDArray[np.uint64], number: NDArray[np.int64], sample: NDArray[np.int64], position: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A random number in [0, 1) that depends on nothing but these four (their shapes are broadcast)."""
    bits = mix(np.atleast_1d(np.asarray(seed, np.uint64)) + GOLDEN_GAMMA)
    for part in (number, sample, position):
        bits = mix((bits ^ part.astype(np.uint64)) + GOLDEN_GAMMA)
    return (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52
