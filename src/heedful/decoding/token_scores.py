"""Log-probabilities and the likeliest tokens of a step, without a log-softmax over the whole vocabulary.

Everything here is computed row by row, so that a row's result does not depend on the rows beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import not_numbers
from heedful.text.shortlist import END_COLUMN
from heedful.text.special_tokens import SpecialTokens

# Tokens per block in the search for the likeliest: the maxima of the blocks say which few to look into.
BLOCK = 64
# With fewer blocks than this for each token wanted, too many would have to be looked into.
FEWEST_BLOCKS = 6
# Elements of scratch space for the softmax, so that it stays in the processor's cache.
SCRATCH = 2**19

_LOW_HALF = 0x7FFFFFFF


class TokenScores:
    """The logits of one step, some of which can be forbidden, and the log-probabilities they stand for.

    They belong to the rows `rows_A` of a larger number of rows; what is computed here has one row for each of these.
    `tokens_of` gives the tokens that columns stand for, if those are not the vocabulary's.
    """

    def __init__(
        self, logits_AV: Tensor, rows_A: NDArray[np.intp], tokens_of: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.logits_AV = logits_AV.float()
        self.rows_A = rows_A
        self.tokens_of = tokens_of
        self.peak_A1, self.log_peak_A1 = _peaks(self.logits_AV)
        # Here, before anything is chosen: a search would go on with the rows that have numbers, or end with none. One
        # NaN, or one logit that is inf, makes its row's log-probability NaN.
        if np.isnan(self.log_peak_A1.cpu().numpy()).any():
            raise not_numbers("scores")

    def check(self) -> None:
        """Raise a UserError also if a logit is -inf, which no search would notice; a shortlist's logits may be."""
        if self.tokens_of is None and not bool(self.logits_AV.isfinite().all()):
            raise not_numbers("scores")

    def log_probabilities(self, columns_AC: Tensor) -> Tensor:
        """The model's log-probability of some columns of each row, never above 0; -inf for forbidden ones."""
        return (self.logits_AV.gather(1, columns_AC) - self.peak_A1) + self.log_peak_A1

    def tokens(self, columns_AC: Tensor) -> Tensor:
        """The tokens that columns stand for."""
        return self.tokens_of(columns_AC) if self.tokens_of else columns_AC

    def spread(self, values_AC: Tensor, shape_NK: tuple[int, int], others: float) -> NDArray[Any]:
        """Values of the rows `rows_A`, as N (K C), with `others` for all other rows."""
        spread_RC = np.full((math.prod(shape_NK), values_AC.shape[1]), others, values_AC.cpu().numpy().dtype)
        spread_RC[self.rows_A] = values_AC.cpu().numpy()
        return spread_RC.reshape(shape_NK[0], -1)

    def likeliest(self, row: int, count: int) -> list[tuple[int, float]]:
        """The tokens of one row with the largest log-probabilities, and these; forbidden tokens are left out."""
        place = int(np.searchsorted(self.rows_A, row))
        assert self.rows_A[place] == row
        logits_1V = self.logits_AV[place : place + 1]
        columns_1C = top_tokens(logits_1V, min(count, logits_1V.shape[1]))
        scores_1C = (logits_1V.gather(1, columns_1C) - self.peak_A1[place]) + self.log_peak_A1[place]
        tokens_AC = self.tokens(columns_1C.expand(len(self.rows_A), -1))
        pairs = zip(tokens_AC[place].tolist(), scores_1C[0].tolist(), strict=True)
        return [(token, score) for token, score in pairs if score > -math.inf]

    def forbid(self, special: SpecialTokens, early_A: Tensor | None) -> None:
        """Rule out all special tokens but END, and END too in the rows where `early_A` is True."""
        if self.tokens_of is None:
            self.logits_AV[:, sorted(special.ids - {special.end})] = -torch.inf
        if early_A is not None:
            self.logits_AV[early_A, special.end if self.tokens_of is None else END_COLUMN] = -torch.inf


def top_tokens(logits_RV: Tensor, count: int) -> Tensor:
    """The ids of the `count` largest logits of each row, largest first, the lower id first among equals."""
    num_blocks = -(-logits_RV.shape[1] // BLOCK)
    if num_blocks >= FEWEST_BLOCKS * count:
        return _top_by_blocks(logits_RV, count, num_blocks)
    values_RC, tokens_RC = logits_RV.topk(count)
    # torch.topk does not say which of equal values it takes: this affects the order, and the choice at the border.
    tokens_RC = tokens_RC.gather(1, _sorted_places(values_RC, tokens_RC, count))
    tied_R = (logits_RV >= values_RC[:, -1:]).sum(-1) > count
    if tied_R.any():
        tied_RV = logits_RV[tied_R]
        tokens_RC[tied_R] = _sorted_places(tied_RV, torch.arange(tied_RV.shape[1]).to(tied_RV.device), count)
    return tokens_RC


def _top_by_blocks(logits_RV: Tensor, count: int, num_blocks: int) -> Tensor:
    """Look only into the `count` blocks with the largest maxima."""
    rows, size = logits_RV.shape
    whole = size // BLOCK
    maxima = logits_RV[:, : whole * BLOCK].reshape(rows, whole, BLOCK).amax(-1)
    if whole < num_blocks:
        maxima = torch.cat([maxima, logits_RV[:, whole * BLOCK :].amax(-1, keepdim=True)], dim=1)
    # Any block left out has `count` others before it, each with a token that comes before all of that block's tokens.
    blocks_RC = _sorted_places(maxima, torch.arange(num_blocks, device=logits_RV.device), count)
    tokens = (blocks_RC[:, :, None] * BLOCK + torch.arange(BLOCK, device=logits_RV.device)).flatten(1)
    values = logits_RV.gather(1, tokens.clamp(max=size - 1))
    values.masked_fill_(tokens >= size, -torch.inf)
    return tokens.gather(1, _sorted_places(values, tokens, count))


def _sorted_places(values: Tensor, ids: Tensor, count: int) -> Tensor:
    """Where in each row the `count` largest values are, largest first, the lower id first among equals."""
    # Value and id make one number without ties: the float's bits, arranged to sort like the float (adding 0 turns -0
    # into 0), above the id, which counts downwards.
    bits = (values + 0.0).view(torch.int32)
    ordered = bits ^ ((bits >> 31) & _LOW_HALF)
    return ((ordered.long() << 32) | (_LOW_HALF - ids)).topk(count).indices


def _peaks(logits_RV: Tensor) -> tuple[Tensor, Tensor]:
    """The largest logit of each row, and its log-probability, log(1 / sum of exp(logit - largest logit))."""
    rows, size = logits_RV.shape
    block = max(1, SCRATCH // size)
    scratch = logits_RV.new_empty(min(rows, block), size)
    peaks_R1, probabilities_R1 = logits_RV.new_empty(2, rows, 1)
    # Both for one block of rows at a time, while its logits are in the processor's cache.
    for start in range(0, rows, block):
        part = logits_RV[start : start + block]
        torch.amax(part, -1, keepdim=True, out=peaks_R1[start : start + block])
        probabilities = torch.softmax(part, -1, out=scratch[: len(part)])
        torch.amax(probabilities, -1, keepdim=True, out=probabilities_R1[start : start + block])
    return peaks_R1, probabilities_R1.log_()
