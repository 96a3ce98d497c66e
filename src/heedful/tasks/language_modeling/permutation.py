"""Learning to predict the tokens of a text in any order (Yang et al., 2019, 2.2 and 2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heedful.models.xlnet import XLNet
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.language_modeling.task import Ids, LanguageTask
from heedful.tasks.language_modeling.windows import windows_of_epoch
from heedful.tasks.task import Indices, Validation


@dataclass(frozen=True)
class PermutationBatch:
    """Segments of text, the text before each, and the order in which each is read.

    The tokens `ids_BT` are at places 0 .. T - 1 of a segment, and those to be predicted, `labels_BP`, at some of the
    places 1 .. T. Place p comes `ranks_BX[p]`-th; place 0 is first, and T, which nothing sees, is last.
    `documents_BS` numbers the documents of the memory and of the segment; places before the text get -1.
    """

    ids_BT: Tensor
    labels_BP: Tensor
    places_BP: Tensor
    ranks_BX: Tensor
    memory_BM: Tensor
    documents_BS: Tensor

    @property
    def num_targets(self) -> int:
        """The tokens that are predicted."""
        return self.labels_BP.numel()

    @property
    def num_tokens(self) -> int:
        """The tokens of the segments."""
        return self.ids_BT.numel()

    num_real = num_tokens

    def halves(self) -> list[PermutationBatch]:
        """The batch in two parts, or unsplit if it is of one segment."""
        if len(self.ids_BT) == 1:
            return [self]
        parts = zip(*(tensor.chunk(2) for tensor in vars(self).values()), strict=True)
        return [PermutationBatch(*part) for part in parts]

    def to(self, device: torch.device) -> PermutationBatch:
        """The batch on another device."""
        return PermutationBatch(*(tensor.to(device) for tensor in vars(self).values()))

    def masks(self) -> tuple[Tensor, Tensor]:
        """B 1 T S: what the contents and the queries see; both see the memory of their own document."""
        memory = self.memory_BM.shape[1]
        contents_BT, queries_BT = self.ranks_BX[:, :-1], self.ranks_BX[:, 1:]
        same_document = self.documents_BS[:, memory:, None] == self.documents_BS[:, None]
        content = contents_BT[:, None] <= contents_BT[:, :, None]
        query = contents_BT[:, None] < queries_BT[:, :, None]
        content, query = (same_document & F.pad(mask, (memory, 0), value=True) for mask in (content, query))
        return content[:, None], query[:, None]


def draw_ranks(length: int, left_to_right: float, seed: Sequence[int]) -> NDArray[np.int64]:
    """When each of the places 0 .. length is read: left to right with probability `left_to_right`, else at random."""
    random = np.random.PCG64(seed)
    ranks = np.arange(length + 1)
    if random.random_raw() >= left_to_right * 2**64:
        ranks[1:-1] = 1 + np.argsort(np.argsort(random.random_raw(length - 1), kind="stable"))
    return ranks


def permutation_loss(
    model: XLNet, batch: PermutationBatch, label_smoothing: float, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """The loss summed over the predicted tokens, with and without label smoothing; `causal` if all is left to right.

    The memory is read again, without gradient, so that a step depends only on its batch.
    """
    memory = batch.memory_BM.shape[1]
    memories = model.remember(batch.memory_BM, batch.documents_BS[:, :memory]) if memory else None
    content, query = batch.masks()
    T, P = batch.ids_BT.shape[1], batch.places_BP.shape[1]
    mapping_BPT = F.one_hot(batch.places_BP - 1, T).to(model.query_embedding.dtype) if P < T else None
    hidden_ND = model.predict(batch.ids_BT, content, query, memories, mapping_BPT, causal=causal).flatten(0, 1)
    return output_cross_entropy(model.output, hidden_ND, batch.labels_BP.flatten(), label_smoothing)


class PermutationTask:
    """A text, and the model that learns to predict its tokens in any order.

    In every segment, the last places of its order are predicted. A share of the segments is read from left to right:
    that is one order of very many, and would otherwise hardly ever be learned, but it is the one in which text is
    scored and generated. A causal model can learn no other order.
    """

    def __init__(self, model: XLNet, language: LanguageTask) -> None:
        self.model, self.language, self.settings = model, language, language.settings
        self.train: Ids = language.train
        self.memory = model.config.memory_length
        self.length = min(model.config.max_length - self.memory, len(self.train) - 1)
        orders = model.config.orders
        self.num_predicted = max(1, round(self.length * orders.predicted))
        self.left_to_right = 1.0 if model.config.causal else orders.left_to_right

    @property
    def width(self) -> int:
        """The model's width."""
        return self.language.width

    @property
    def unit(self) -> str:
        """Tokens that are predicted; the other tokens of a segment are given."""
        return "predicted tokens"

    @property
    def validation_tokens(self) -> int:
        """Those of the held-out text, each with the memory before it."""
        return self.language.validation_tokens * (1 + self.memory // self.length)

    @property
    def largest_loss(self) -> float:
        """Four times the loss of a uniform guess."""
        return self.language.largest_loss

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """Segments that cover the text, numbered across epochs, since each epoch reads them in other orders."""
        starts = windows_of_epoch(len(self.train), self.language.mixed, self.length, self.settings, epoch)
        return [epoch * len(self.train) + each for each in starts]

    def collate(self, indices: Indices) -> PermutationBatch:
        """Some segments as tensors on the model's device."""
        self.language.pages.read(len(indices))
        epochs, starts = np.divmod(indices, len(self.train))
        seeds = [[self.settings.seed, int(epoch), int(start)] for epoch, start in zip(epochs, starts, strict=True)]
        ranks_BX = np.stack([draw_ranks(self.length, self.left_to_right, seed) for seed in seeds])
        # The last places of the reading order, sorted by place; place 0 is given.
        places_BP = np.sort(1 + np.argsort(ranks_BX[:, 1:], axis=1)[:, -self.num_predicted :], axis=1)
        offsets_BX = starts[:, None] + np.arange(-self.memory, self.length + 1)
        rows_BX = self.train[np.maximum(offsets_BX, 0)].astype(np.int64)
        begins_BX = rows_BX == self.model.special_tokens.end
        documents_BX = np.where(offsets_BX < 0, -1, begins_BX.cumsum(1))
        segments_BX = rows_BX[:, self.memory :]
        arrays = (
            segments_BX[:, :-1],
            np.take_along_axis(segments_BX, places_BP, 1),
            places_BP,
            ranks_BX,
            rows_BX[:, : self.memory],
            documents_BX[:, :-1],
        )
        return PermutationBatch(*map(torch.from_numpy, arrays)).to(self.model.device)

    def loss(self, model: XLNet, batch: PermutationBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        return permutation_loss(model, batch, self.settings.label_smoothing, self.left_to_right == 1.0)

    def validate(self) -> Validation:
        """The loss over all of the held-out text, from left to right."""
        return self.language.validate()

    def read_examples(self, model: XLNet) -> Iterator[None]:
        """Let a model read a few windows of the held-out text, from left to right."""
        return self.language.read_examples(model)
