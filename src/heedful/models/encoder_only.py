"""Encoder-only Transformers, such as BERT: every token sees the whole text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import known_size
from heedful.errors import UserError
from heedful.layers.attention import Attend
from heedful.layers.blocks import final_norm, initialise
from heedful.layers.convolutions import Neighbourhood
from heedful.layers.dropout import Dropout, dropout
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.masks import given_lengths, padding_mask, whole_lengths
from heedful.layers.stacks import quieten, self_stack, stack_positions
from heedful.settings.encoder_only import EncoderOnlyConfig, Pooling
from heedful.text.special_tokens import SpecialTokens


class MaskedTransform(nn.Module):
    """What BERT does to a token before it compares it with the vocabulary."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, x_ND: Tensor) -> Tensor:
        """A dense layer, GELU and a norm."""
        return self.norm(F.gelu(self.dense(x_ND)))


class EncoderOnly(nn.Module):
    """Token ids in, the logits of the head out."""

    def __init__(self, config: EncoderOnlyConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, vocabulary, stack = config.width, known_size(config.vocabulary_size), config.stack
        assert vocabulary is not None
        self.positions = stack_positions(config.positions, width, stack, config.max_length)
        self.embedding = TokenEmbedding(
            nn.Embedding(vocabulary, width), self.positions, stack.dropout, config.embedding
        )
        self.neighbourhood = Neighbourhood(width, config.convolution) if config.convolution else None
        self.blocks = self_stack(width, stack, self.positions)
        self.norm = final_norm(width, stack)
        pooled = config.pooler and config.head in ("classes", "none")
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if pooled else nn.Identity()
        masked, outputs = config.head == "masked", config.num_labels
        self.transform = MaskedTransform(width, stack.norm_epsilon) if masked else Dropout(stack.dropout)
        self.output = nn.Linear(width, vocabulary if masked else outputs) if config.head != "none" else nn.Identity()
        self.apply(initialise)
        if not config.embedding.scaled:  # the same scale as BERT: the output layer, if tied, must not begin loud
            nn.init.normal_(self.embedding.table.weight, std=0.02)
        if masked:
            self.output.weight = self.embedding.table.weight
        if stack.norm == "pre":
            quieten(self.blocks)

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        return self.config.special_tokens

    @property
    def head_modules(self) -> tuple[nn.Module, ...]:
        """The head, which turns features into answers."""
        return self.transform, self.output

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        return {"self": [block.attention.attend for block in self.blocks]}

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.table.weight.device

    @property
    def output_layer(self) -> nn.Linear:
        """The last layer of a model that has a head."""
        assert isinstance(self.output, nn.Linear)
        return self.output

    def hidden(
        self,
        ids_BT: Tensor,
        lengths_B: Tensor | None = None,
        segments_BT: Tensor | None = None,
        *,
        always_mask: bool = False,
    ) -> Tensor:
        """The last block's output; with `always_mask`, rows without padding take the same code path as others.

        Without lengths no text has padding.
        """
        lengths_B = whole_lengths(ids_BT) if lengths_B is None else lengths_B
        self.positions.cover(ids_BT.shape[1])
        positions_T = torch.arange(ids_BT.shape[1], device=ids_BT.device)
        mask = padding_mask(lengths_B, ids_BT.shape[1], always=always_mask)
        if self.training and self.config.token_dropout and self.config.head != "masked":
            ids_BT = self._drop_tokens(ids_BT)
        x_BTD = self.embedding(ids_BT, positions_T, segments_BT)
        if self.neighbourhood is not None:
            x_BTD = self.neighbourhood(x_BTD, lengths_B)
        return self.norm(self.blocks(x_BTD, mask, positions=positions_T))

    def _drop_tokens(self, ids_BT: Tensor) -> Tensor:
        """Replace a share of the tokens, but never the class and end tokens, by the mask token."""
        special = self.special_tokens
        if special.mask is None:
            raise UserError(
                f"token_dropout is {self.config.token_dropout}, but special_tokens has no mask to hide tokens with: "
                "give its id, such as SpecialTokens(mask=3), or set token_dropout to 0"
            )
        kept_BT = dropout(torch.ones(ids_BT.shape, device=ids_BT.device), self.config.token_dropout) > 0
        kept_BT |= (ids_BT == special.start) | (ids_BT == special.end)
        return ids_BT.where(kept_BT, special.mask)

    def pooled(self, hidden_BTD: Tensor, lengths_B: Tensor, pooling: Pooling | None = None) -> Tensor:
        """Whole texts, B D, before the pooler; padding is ignored."""
        if (pooling or self.config.pooling) == "class_token":
            return hidden_BTD[:, 0]
        real_BT1 = (torch.arange(hidden_BTD.shape[1], device=lengths_B.device) < lengths_B[:, None])[..., None]
        return (hidden_BTD * real_BT1).sum(1) / lengths_B[:, None]

    def features(self, hidden_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """What the head looks at: whole texts for classes (B D), every token otherwise (B T D)."""
        return self.pooler(self.pooled(hidden_BTD, lengths_B)) if self.config.head == "classes" else hidden_BTD

    def forward(
        self,
        ids_BT: Tensor,
        lengths_B: Tensor | Sequence[int] | None = None,
        segments_BT: Tensor | None = None,
        *,
        always_mask: bool = False,
    ) -> Tensor:
        """The logits of the head: B V for classes, B T V for masked tokens and tags; B T D without a head."""
        given_B = given_lengths(lengths_B, ids_BT)
        lengths_B = whole_lengths(ids_BT) if given_B is None else given_B
        return self.answers(self.hidden(ids_BT, lengths_B, segments_BT, always_mask=always_mask), lengths_B)

    def answers(self, hidden_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """The logits of the head, from the last block's output."""
        return self.output(self.transform(self.features(hidden_BTD, lengths_B)))

    def resize_positions(self, length: int) -> None:
        """Make the model fit texts of up to `length` (see `layers/positions` for the rule)."""
        self.max_length = length
        self.positions.resize(length)
