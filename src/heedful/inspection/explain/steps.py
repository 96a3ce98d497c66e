"""What each step of the computation is called, its formula, why it is there, and the code that computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heedful.inspection.explain.code_lines import CodeLine, code_line
from heedful.layers.attention import Scoring, attention_weights
from heedful.layers.blocks import PostNorm, PreNorm
from heedful.layers.blockwise_attention import mixed
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.feed_forward import FeedForward
from heedful.layers.grid_positions import GridPositions
from heedful.layers.multi_head_attention import AttentionHeads, MultiHeadAttention, SelfAttention
from heedful.layers.patches import PatchEmbedding
from heedful.layers.relative_attention import RelativeAttention, RelativeScoring


@dataclass(frozen=True)
class Step:
    """A step: its title, its formula, one sentence on it, and where the code of it stands."""

    title: str
    formula: str
    about: str
    place: Any = None
    fragment: str = ""

    @property
    def code(self) -> CodeLine | None:
        """The line that computes it; what belongs to a whole model has none of the layers'."""
        return None if self.place is None else code_line(self.place, self.fragment)


def _step(*given: Any) -> Step:
    return Step(*given)


EMBEDDING = {
    "ids": _step("Token ids", "text → ids", "Each token is a number: its row in the table of embeddings."),
    "vectors": _step(
        "Embeddings", "x = E[id]", "The row of the table that belongs to each token.", TokenEmbedding, "self.table(ids)"
    ),
    "scaled": _step(
        "Times √d",
        "x · √d_model",
        "Makes embeddings as large as what positions add (paper, 3.4).",
        TokenEmbedding,
        "math.sqrt(width)",
    ),
    "positions": _step(
        "Positions",
        "PE(pos)",
        "Attention sees a set: this tells it where each token stands (paper, 3.5).",
        TokenEmbedding,
        "self.positions.add",
    ),
    "segments": _step(
        "Segments", "+ s", "Which text of a pair a token belongs to.", TokenEmbedding, "self.segments(torch"
    ),
    "sum": _step(
        "Sum",
        "E[id] + PE + s",
        "All that is known of a token before it meets the others.",
        TokenEmbedding,
        "x_BTD = self.positions.add",
    ),
    "output": _step(
        "Into the first block",
        "x₀",
        "A row per token, which the blocks will change step by step.",
        TokenEmbedding,
        "return self.dropout",
    ),
}
ATTENTION = {
    "queries": _step(
        "Queries",
        "Q = x W_Q",
        "What each token looks for, in this head.",
        SelfAttention,
        "self.query_key_value_projection(x_BTD)",
    ),
    "keys": _step(
        "Keys",
        "K = x W_K",
        "What each token offers to be found by, in this head.",
        SelfAttention,
        "query, key, value = self.project",
    ),
    "values": _step(
        "Values",
        "V = x W_V",
        "What each token hands over when it is looked at.",
        SelfAttention,
        "query, key, value = self.project",
    ),
    "positions": _step("Places", "pos", "Where each token stands.", SelfAttention, "torch.arange(x_BTD.shape[1]"),
    "turned_queries": _step(
        "Queries, turned",
        "R(pos) Q",
        "Each pair of numbers is turned by an angle that grows with the position.",
        SelfAttention,
        "rotate(query, positions)",
    ),
    "turned_keys": _step(
        "Keys, turned",
        "R(pos) K",
        "Turned likewise, so that their product depends on the distance.",
        SelfAttention,
        "rotate(query, positions)",
    ),
    "distances": _step(
        "Keys of distances",
        "R = W_R sin/cos(d)",
        "A key for every distance, in place of positions.",
        RelativeAttention,
        "self.distance_projection(sinusoids_XD)",
    ),
    "content_scores": _step(
        "Scores by content",
        "(Q + u) Kᵀ",
        "How well a key's token suits the query.",
        RelativeScoring,
        "by_content @ key_BHSK",
    ),
    "distance_scores": _step(
        "Scores by distance", "(Q + v) Rᵀ", "How well its distance does.", RelativeScoring, "table_HNX = by_distance"
    ),
    "segment_scores": _step(
        "Scores by segment", "(Q + w) s", "Whether it is in the same text.", RelativeScoring, "by_segment ="
    ),
    "scores": _step(
        "Scores", "Q Kᵀ", "One dot product for each pair of a query and a key.", Scoring, "@ key_BHSK.transpose(-1, -2)"
    ),
    "scaled": _step(
        "Divided by √dₖ",
        "Q Kᵀ / √{K}",
        "Keeps the variance at 1, where the softmax still has gradients (paper, 3.2.1).",
        AttentionHeads,
        "1.0 / math.sqrt(self.key_width)",
    ),
    "bias": _step(
        "Bias of positions",
        "b(distance)",
        "What a distance adds to a score.",
        SelfAttention,
        "bias = self._positions[0].bias(positions",
    ),
    "biased": _step(
        "Scores with bias",
        "Q Kᵀ / √{K} + b",
        "Near keys and far keys start from different scores.",
        Scoring,
        "scores_BHTS + self.bias",
    ),
    "masked": _step(
        "Masked",
        "−∞ where hidden",
        "What must not be seen, such as the future, gets −∞ (paper, 3.2.3).",
        attention_weights,
        "masked_fill(~mask",
    ),
    "weights": _step(
        "Softmax", "A = softmax(scores)", "Each row becomes shares that sum to 1.", attention_weights, ".softmax(-1)"
    ),
    "mixed": _step(
        "Weighted values",
        "A V",
        "The values of all keys, mixed by these shares.",
        mixed,
        "weights_BHTS[..., :size] @ value",
    ),
    "joined": _step(
        "Heads joined",
        "Concat(head₁ … head_{H})",
        "The results of all heads, side by side.",
        AttentionHeads,
        "heads_BHTV.transpose(1, 2).flatten(2)",
    ),
    "output": _step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        SelfAttention,
        "self.output_projection(self.mix",
    ),
}
CROSS = {
    "queries": _step(
        "Queries",
        "Q = x W_Q",
        "What each token of the target looks for.",
        MultiHeadAttention,
        "self.query_projection(query_BTD)",
    ),
    "keys": _step(
        "Keys of the source",
        "K = memory W_K",
        "From the encoder's output; computed once.",
        MultiHeadAttention,
        "self.key_value_projection(key_BSD)",
    ),
    "values": _step(
        "Values of the source",
        "V = memory W_V",
        "What the source hands over.",
        MultiHeadAttention,
        "self.key_value_projection(key_BSD)",
    ),
    "output": _step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        MultiHeadAttention,
        "self.output_projection(self._mixed(packed",
    ),
}
RELATIVE = {
    "queries": _step(
        "Queries",
        "Q = x W_Q",
        "What each position looks for.",
        RelativeAttention,
        "split_heads(self.query_key_value_projection(h_BTD)",
    ),
    "scores": _step(
        "Scores", "their sum", "By content, by distance, and by segment.", RelativeScoring, "by_content @ key_BHSK"
    ),
    "scaled": _step(
        "Divided by √dₖ", "scores / √{K}", "Keeps the variance at 1.", RelativeAttention, "1.0 / math.sqrt(key_width)"
    ),
    "joined": _step(
        "Heads joined",
        "Concat(head₁ … head_{H})",
        "The results of all heads, side by side.",
        RelativeAttention,
        "heads_BHTV.transpose(1, 2).flatten(2)",
    ),
    "output": _step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        RelativeAttention,
        "return self.output_projection",
    ),
}
RESIDUAL = {
    "normed": _step(
        "Norm before",
        "LayerNorm(x)",
        "Mean 0 and variance 1 in each row, then a learned scale.",
        PreNorm,
        "x + self.dropout(sublayer(self.norm(x)))",
    ),
    "sum": _step(
        "Residual",
        "x + Sublayer(x)",
        "What came in is kept, and what was found is added to it.",
        PostNorm,
        "self.norm(x + self.dropout(sublayer(x)))",
    ),
}
AFTER_SUM = _step(
    "Norm",
    "LayerNorm(x + Sublayer(x))",
    "Mean 0 and variance 1 in each row, then a learned scale.",
    PostNorm,
    "self.norm(x + self.dropout(sublayer(x)))",
)
AFTER_NORM = _step(
    "Residual",
    "x + Sublayer(LayerNorm(x))",
    "What came in is kept, and what was found is added to it.",
    PreNorm,
    "x + self.dropout(sublayer(self.norm(x)))",
)
FEED_FORWARD = {
    "inner": _step(
        "Inner layer",
        "x W₁ + b₁",
        "Each row by itself, to a larger width (paper, 3.3).",
        FeedForward,
        "self.inner_projection(x_BTD)",
    ),
    "activated": _step(
        "Activation",
        "{activation}(x W₁ + b₁)",
        "What makes the network more than one matrix.",
        FeedForward,
        "self.activation(self.inner",
    ),
    "output": _step(
        "Outer layer", "… W₂ + b₂", "Back to the width of the model.", FeedForward, "return self.output_projection"
    ),
}
AROUND = {
    "encoder_norm.output": _step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "decoder_norm.output": _step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "norm.output": _step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "embedding.vectors": _step("Embeddings", "x = E[id]", "The row of the table that belongs to each token."),
    "pooled": _step("The whole as one row", "x₀, or a mean", "What the head looks at."),
    "pooler.output": _step("Pooler", "tanh(x W + b)", "A last layer before the head."),
    "transform.dense": _step("Dense", "x W + b", "Before a token is compared with the vocabulary."),
    "transform.activated": _step("Activation", "GELU(x W + b)", "As BERT does."),
    "transform.output": _step("Norm", "LayerNorm", "As BERT does."),
    "patches.windows": _step(
        "Patches",
        "image → pixels of each patch",
        "An image as a sequence: a row per patch.",
        PatchEmbedding,
        "cut_patches",
    ),
    "patches.output": _step(
        "Patch embeddings",
        "pixels · W + b",
        "Each patch becomes a token.",
        PatchEmbedding,
        "self.projection(patches_BPC)",
    ),
    "positions.output": _step(
        "Positions",
        "a vector per place",
        "Learned, and interpolated at another resolution.",
        GridPositions,
        "interpolate",
    ),
    "placed": _step("With positions", "patches + positions", "What is known of each patch before it meets the others."),
    "neighbourhood.output": _step("Neighbourhood", "convolution", "Each token with those next to it."),
    "class_token.output": _step("Class token", "[class; patches]", "A token of its own, which will hold the answer."),
}


def step_of(name: str, *, pre_norm: bool) -> Step:
    """The step that gives the tensor of that name."""
    if name in AROUND:
        return AROUND[name]
    *parts, last = name.split(".")
    part = parts[-1]
    tables: dict[str, Callable[[], dict[str, Step]]] = {
        "attention": lambda: {**ATTENTION, **(RELATIVE if len(parts) > 3 else {})},
        "cross_attention": lambda: {**ATTENTION, **CROSS},
        "feed_forward": lambda: FEED_FORWARD,
    }
    if part in tables:
        return tables[part]()[last]
    if part.endswith("residual"):
        return RESIDUAL.get(last) or (AFTER_NORM if pre_norm else AFTER_SUM)
    return EMBEDDING[last]
