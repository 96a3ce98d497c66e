"""The output layer of a model that has a shortlist: it computes logits only for the tokens that a sentence may use."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.layers.tree_cache import TreeLayerCache
from heedful.text.shortlist import LONGEST_SHORTLIST, Shortlist


class OwnColumns:
    """What the logits' columns stand for, for the sentences of a decoding state: F frequent tokens, C of their own."""

    def __init__(self, frequent_F: Tensor, sentences: int, width: int, dtype: torch.dtype) -> None:
        device = frequent_F.device
        self.frequent_F = frequent_F
        self.own_NC = torch.zeros(sentences, LONGEST_SHORTLIST, dtype=torch.long, device=device)
        self.weights_NCD = torch.zeros(sentences, LONGEST_SHORTLIST, width, dtype=dtype, device=device)
        # Added to their logits: the output layer's bias, or -inf where there is no token.
        self.added_N1C = torch.zeros(sentences, 1, LONGEST_SHORTLIST, dtype=dtype, device=device)

    def copy_sentences(self, destination_N: Tensor, origin_N: Tensor) -> None:
        """Let sentences continue in other slots."""
        for each in (self.own_NC, self.weights_NCD, self.added_N1C):
            each[destination_N] = each[origin_N]

    def tokens(self, columns_AC: Tensor, sentences_A: Tensor) -> Tensor:
        """The tokens that columns stand for, in rows of these sentences."""
        common = len(self.frequent_F)
        frequent_AC = self.frequent_F[columns_AC.clamp(max=common - 1)]
        own_AC = self.own_NC[sentences_A].gather(1, (columns_AC - common).clamp(min=0))
        return torch.where(columns_AC < common, frequent_AC, own_AC)


class ShortlistOutput(nn.Module):
    """The output layer of a model, for the tokens of a shortlist."""

    def __init__(self, shortlist: Shortlist, output: nn.Linear) -> None:
        super().__init__()
        self.shortlist = shortlist
        self.weight_VD = output.weight.detach()
        self.bias_V = None if output.bias is None else output.bias.detach()
        self.frequent_F = torch.from_numpy(shortlist.frequent_F).to(self.weight_VD.device)
        self.frequent = nn.Linear(output.in_features, len(self.frequent_F), output.bias is not None)
        self.frequent.weight = nn.Parameter(self.weight_VD[self.frequent_F], requires_grad=False)
        if self.bias_V is not None:
            self.frequent.bias = nn.Parameter(self.bias_V[self.frequent_F], requires_grad=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> ShortlistOutput:
        """Itself: nothing in it ever changes, and views of a model share what they can."""
        return self

    def own_tokens(self, source_BS: Tensor, lengths_B: Tensor) -> Tensor:
        """The tokens B C that each source calls for, and -1 where there are fewer."""
        own_BC = np.full((len(source_BS), LONGEST_SHORTLIST), -1)
        for row, (source, length) in enumerate(zip(source_BS.cpu().numpy(), lengths_B.tolist(), strict=True)):
            found = self.shortlist.own_tokens(source[:length])
            own_BC[row, : len(found)] = found
        return torch.from_numpy(own_BC).to(source_BS.device)

    def new_columns(self, sentences: int) -> OwnColumns:
        """Room for the own tokens of that many sentences."""
        # The whole weights are no parameter of this layer, and do not change their type with the model's.
        return OwnColumns(self.frequent_F, sentences, self.weight_VD.shape[1], self.frequent.weight.dtype)

    def insert(self, columns: OwnColumns, slots_N: Tensor, own_NC: Tensor) -> None:
        """Give sentences their own tokens."""
        there, own_NC = own_NC >= 0, own_NC.clamp(min=0)
        columns.own_NC[slots_N] = own_NC
        dtype = columns.weights_NCD.dtype
        columns.weights_NCD[slots_N] = self.weight_VD[own_NC].to(dtype)
        bias_NC = torch.zeros_like(there, dtype=dtype) if self.bias_V is None else self.bias_V[own_NC].to(dtype)
        columns.added_N1C[slots_N] = bias_NC.masked_fill(~there, -torch.inf)[:, None]

    def logits(self, hidden_AD: Tensor, columns: OwnColumns, cache: TreeLayerCache) -> Tensor:
        """The logits of the frequent tokens, then of each sentence's own ones."""
        hidden_NQD = cache.spread(hidden_AD)
        sentences = len(hidden_NQD)
        weights_NDC = columns.weights_NCD[:sentences].transpose(1, 2)
        own_NQC = torch.baddbmm(columns.added_N1C[:sentences], hidden_NQD, weights_NDC)
        return torch.cat([self.frequent(hidden_AD), cache.collect(own_NQC)], dim=1)
