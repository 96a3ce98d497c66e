"""The parts that models are built from, each of which can be used by itself; nothing here knows of models."""

from heedful.layers.attention import AttentionConfig, attend_explicit, attend_fused, attention_weights
from heedful.layers.blocks import CrossBlock, PostNorm, PreNorm, SelfBlock, StackConfig
from heedful.layers.embeddings import EmbeddingConfig, TokenEmbedding
from heedful.layers.feed_forward import FeedForward, FeedForwardConfig
from heedful.layers.masks import causal_mask, padding_mask
from heedful.layers.multi_head_attention import MultiHeadAttention, SelfAttention
from heedful.layers.positions import PositionConfig, PositionScheme, PositionSizes, make_positions
from heedful.layers.stacks import Decoder, Encoder

__all__ = [
    "AttentionConfig",
    "CrossBlock",
    "Decoder",
    "EmbeddingConfig",
    "Encoder",
    "FeedForward",
    "FeedForwardConfig",
    "MultiHeadAttention",
    "PositionConfig",
    "PositionScheme",
    "PositionSizes",
    "PostNorm",
    "PreNorm",
    "SelfAttention",
    "SelfBlock",
    "StackConfig",
    "TokenEmbedding",
    "attend_explicit",
    "attend_fused",
    "attention_weights",
    "causal_mask",
    "make_positions",
    "padding_mask",
]
