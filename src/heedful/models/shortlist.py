"""A vocabulary of its own for each sentence: the tokens that are frequent anyway, and those that its words call for.

The output layer then has a fraction of its work. What a sentence may use depends on its own source alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.files import write_tensors
from heedful.layers.tree_cache import TreeLayerCache

FILE = "shortlist.safetensors"
# The most tokens that a sentence adds to the frequent ones.
LONGEST_SHORTLIST = 128
# The end is the first of the frequent tokens, hence of the columns.
END_COLUMN = 0


@dataclass(frozen=True)
class Shortlist:
    """The F frequent target tokens, the end first, and for each source token E others, how strongly it calls for them.

    A strength of 0 stands for no token. Special tokens other than the end are not among them.
    """

    frequent_F: NDArray[np.int64]
    likely_VE: NDArray[np.int64]
    strengths_VE: NDArray[np.float32]

    def own_tokens(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens that a source calls for most strongly, without the frequent ones."""
        tokens, strengths = self.likely_VE[source].ravel(), self.strengths_VE[source].ravel()
        order = np.lexsort((tokens, -strengths))
        order = order[strengths[order] > 0]
        _, firsts = np.unique(tokens[order], return_index=True)
        return tokens[order][np.sort(firsts)[:LONGEST_SHORTLIST]]

    def save(self, folder: Path) -> None:
        """Write it into a model folder."""
        arrays = {"frequent": self.frequent_F, "likely": self.likely_VE, "strengths": self.strengths_VE}
        write_tensors(folder / FILE, {name: torch.from_numpy(each) for name, each in arrays.items()}, {})


def load_shortlist(folder: Path, vocabulary: int) -> Shortlist:
    """The shortlist of a model folder, for a model with so many tokens."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not (folder / FILE).is_file():
        raise UserError(f"{folder} has no shortlist: make one by heedful shortlist {folder} --source ... --target ...")
    try:
        arrays = load_file(folder / FILE)
        found = Shortlist(arrays["frequent"], arrays["likely"], arrays["strengths"])
        _check_arrays(found)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise UserError(f"{folder / FILE} is broken: {error}; make it again by heedful shortlist") from None
    if len(found.likely_VE) != vocabulary or max(found.frequent_F.max(), found.likely_VE.max()) >= vocabulary:
        raise UserError(f"{folder / FILE} is of another vocabulary: make it again by heedful shortlist")
    return found


def _check_arrays(found: Shortlist) -> None:
    expected = ((found.frequent_F, np.int64, 1), (found.likely_VE, np.int64, 2), (found.strengths_VE, np.float32, 2))
    if any(each.dtype != kind or each.ndim != axes or not each.size for each, kind, axes in expected):
        raise ValueError("its arrays have other types or axes than they should")
    if found.likely_VE.shape != found.strengths_VE.shape or min(found.frequent_F.min(), found.likely_VE.min()) < 0:
        raise ValueError("its arrays do not go together")


class OwnColumns:
    """What the logits' columns stand for, in the sentences of a decoding state: F frequent tokens, C own ones."""

    def __init__(self, frequent_F: Tensor, sentences: int, width: int) -> None:
        device = frequent_F.device
        self.frequent_F = frequent_F
        self.own_NC = torch.zeros(sentences, LONGEST_SHORTLIST, dtype=torch.long, device=device)
        self.weights_NCD = torch.zeros(sentences, LONGEST_SHORTLIST, width, device=device)
        # What is added to their logits: the output layer's bias, or -inf where there is no token.
        self.added_N1C = torch.zeros(sentences, 1, LONGEST_SHORTLIST, device=device)

    def copy_sentences(self, destination_N: Tensor, origin_N: Tensor) -> None:
        """Let sentences go on in other slots."""
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

    def own_tokens(self, source_BS: Tensor) -> Tensor:
        """The tokens B C that each source calls for, and -1 where there are fewer."""
        own_BC = np.full((len(source_BS), LONGEST_SHORTLIST), -1)
        for row, source in enumerate(source_BS.cpu().numpy()):
            found = self.shortlist.own_tokens(source)
            own_BC[row, : len(found)] = found
        return torch.from_numpy(own_BC).to(source_BS.device)

    def new_columns(self, sentences: int) -> OwnColumns:
        """Room for the own tokens of that many sentences."""
        return OwnColumns(self.frequent_F, sentences, self.weight_VD.shape[1])

    def insert(self, columns: OwnColumns, slots_N: Tensor, own_NC: Tensor) -> None:
        """Give sentences their own tokens."""
        there, own_NC = own_NC >= 0, own_NC.clamp(min=0)
        columns.own_NC[slots_N] = own_NC
        columns.weights_NCD[slots_N] = self.weight_VD[own_NC]
        bias_NC = torch.zeros_like(there, dtype=torch.float32) if self.bias_V is None else self.bias_V[own_NC]
        columns.added_N1C[slots_N] = bias_NC.masked_fill(~there, -torch.inf)[:, None]

    def logits(self, hidden_AD: Tensor, columns: OwnColumns, cache: TreeLayerCache) -> Tensor:
        """The logits of the frequent tokens, then of each sentence's own ones."""
        hidden_NQD = cache.spread(hidden_AD)
        sentences = len(hidden_NQD)
        weights_NDC = columns.weights_NCD[:sentences].transpose(1, 2)
        own_NQC = torch.baddbmm(columns.added_N1C[:sentences], hidden_NQD, weights_NDC)
        return torch.cat([self.frequent(hidden_AD), cache.collect(own_NQC)], dim=1)
