"""The Transformer of the paper: an encoder, a decoder, and the vocabulary's output layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import require
from heedful.layers.blocks import DecoderBlock, EncoderBlock, StackConfig, final_norm
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.kv_cache import padded_length
from heedful.layers.masks import padding_mask
from heedful.layers.positions import SCHEMES, PositionScheme
from heedful.models.decoding_state import DecodingState, Prefilled


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """The settings of an encoder-decoder; `max_length` is that of the longest sequence in training.

    The vocabulary's size is that of the tokenizer, and None until that is there.
    """

    vocabulary_size: int | None = None
    width: int = 512
    max_length: int = 256
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    shared_embeddings: bool = True
    tied_output: bool = True
    encoder: StackConfig = field(default_factory=StackConfig)
    decoder: StackConfig = field(default_factory=StackConfig)

    def __post_init__(self) -> None:
        require(self.width, "width", 1)
        require(self.max_length, "max_length", 1)


class EncoderDecoder(nn.Module):
    """Source ids and target ids in, logits of the next target ids out."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, vocabulary = config.width, config.vocabulary_size
        assert vocabulary is not None
        source_positions, target_positions = (_positions(config, stack) for stack in (config.encoder, config.decoder))
        target_table = nn.Embedding(vocabulary, width)
        source_table = target_table if config.shared_embeddings else nn.Embedding(vocabulary, width)
        self.source_embedding = TokenEmbedding(source_table, source_positions, config.encoder.dropout)
        self.target_embedding = TokenEmbedding(target_table, target_positions, config.decoder.dropout)
        self.encoder = nn.ModuleList(
            EncoderBlock(width, config.encoder, source_positions) for _ in range(config.encoder.num_layers)
        )
        self.encoder_norm = final_norm(width, config.encoder)
        self.decoder = nn.ModuleList(
            DecoderBlock(width, config.decoder, target_positions) for _ in range(config.decoder.num_layers)
        )
        self.decoder_norm = final_norm(width, config.decoder)
        self.output = nn.Linear(width, vocabulary, bias=False)
        if config.tied_output:
            self.output.weight = target_table.weight
        self.apply(_initialise)
        for blocks, stack in ((self.encoder, config.encoder), (self.decoder, config.decoder)):
            if stack.norm == "pre":
                _quieten(blocks)

    @property
    def decoder_blocks(self) -> Sequence[DecoderBlock]:
        """The decoder's blocks, with their type."""
        return cast(Sequence[DecoderBlock], self.decoder)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.output.weight.device

    def encode(self, source_BS: Tensor, mask: Tensor | None) -> Tensor:
        """The encoder's output; `mask` is None when no row has padding."""
        self.source_embedding.positions.extend(source_BS.shape[1])
        positions_S = torch.arange(source_BS.shape[1], device=source_BS.device)
        x_BSD = self.source_embedding(source_BS, positions_S)
        for block in self.encoder:
            x_BSD = block(x_BSD, positions_S, mask)
        return self.encoder_norm(x_BSD)

    def decode(self, target_BT: Tensor, memory_BSD: Tensor, memory_mask: Tensor | None) -> Tensor:
        """The decoder's output, before the output layer."""
        self.target_embedding.positions.extend(target_BT.shape[1])
        positions_T = torch.arange(target_BT.shape[1], device=target_BT.device)
        x_BTD = self.target_embedding(target_BT, positions_T)
        for block in self.decoder:
            x_BTD = block(x_BTD, positions_T, memory_BSD, memory_mask)
        return self.decoder_norm(x_BTD)

    def hidden(self, source_BS: Tensor, source_lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        """The decoder's output for whole batches; `target_BT` starts with the start token."""
        mask = padding_mask(source_lengths_B, source_BS.shape[1])
        return self.decode(target_BT, self.encode(source_BS, mask), mask)

    def forward(self, source_BS: Tensor, source_lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        """The logits B T V of the token that follows each target position."""
        return self.output(self.hidden(source_BS, source_lengths_B, target_BT))

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> Prefilled:
        """Encode sentences and compute their cross-attention keys and values, once."""
        source_BS = F.pad(source_BS, (0, padded_length(source_BS.shape[1]) - source_BS.shape[1]))
        memory_BSD = self.encode(source_BS, padding_mask(source_lengths_B, source_BS.shape[1], always=True))
        pairs = [block.cross_attention.keys_values(memory_BSD) for block in self.decoder_blocks]
        keys, values = zip(*pairs, strict=True)
        return Prefilled(torch.stack(keys), torch.stack(values), source_lengths_B)

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> DecodingState:
        """Preallocated room for that many sentences, beams, source tokens and target tokens."""
        self.target_embedding.positions.extend(padded_length(target_length))
        attention = self.decoder_blocks[0].cross_attention
        shape = (len(self.decoder), attention.num_heads, attention.key_width, attention.value_width)
        return DecodingState(shape, (num_sentences, beam, source_length, target_length), self.device)

    def step(self, tokens_R: Tensor, state: DecodingState) -> Tensor:
        """The next logits R V of every row in use, given the last token of each."""
        view = state.begin_step()
        tokens_R1 = F.pad(tokens_R, (0, view.rows - len(tokens_R)))[:, None]
        x_RD = self.target_embedding(tokens_R1, view.positions_R1)[:, 0]
        for block, cache, key, value in zip(self.decoder_blocks, view.caches, view.keys, view.values, strict=True):
            x_RD = block.step(x_RD, cache, key, value, view.source_mask)
        logits_RV = self.output(self.decoder_norm(x_RD))
        state.end_step()
        return logits_RV[: len(tokens_R)]

    @property
    def longest_target(self) -> int | None:
        """The most target tokens that the model can take, if its positions set a limit."""
        return None if self.target_embedding.positions.extends else self.max_length

    def resize_positions(self, length: int) -> None:
        """Make the model good for sequences of up to `length` (see `layers/positions.py` for the rule)."""
        self.max_length = length
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.positions.resize(padded_length(length + 1))


def _positions(config: EncoderDecoderConfig, stack: StackConfig) -> PositionScheme:
    head_width = stack.attention.key_width or config.width // stack.attention.num_heads
    # The end token comes on top, and prefilled sources are padded.
    return SCHEMES[config.positions](config.width, head_width, padded_length(config.max_length + 1))


@torch.no_grad()
def _quieten(blocks: nn.ModuleList) -> None:
    """Scale what the sub-layers add at first by the root of their number (Radford et al., 2019).

    Nothing normalises the sum itself in a pre-norm stack: without this it would drown the embeddings.
    """
    outputs = [each for name, each in blocks.named_modules() if name.endswith("output_projection")]
    for output in outputs:
        assert isinstance(output, nn.Linear)
        output.weight.mul_(len(outputs) ** -0.5)


def _initialise(module: nn.Module) -> None:
    # Glorot for projections, and embeddings whose scaled sum has unit variance, as the paper's code did.
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
