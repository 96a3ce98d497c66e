"""The steps of attention: the name, formula and purpose of each, and the code that computes it."""

from __future__ import annotations

from heedful.inspection.explain.step import Step
from heedful.layers.attention import Scoring, attention_weights
from heedful.layers.blockwise_attention import mixed
from heedful.layers.multi_head_attention import AttentionHeads, MultiHeadAttention, SelfAttention
from heedful.layers.relative_attention import RelativeAttention, RelativeScoring

ATTENTION = {
    "queries": Step(
        "Queries",
        "Q = x W_Q",
        "What each token looks for, in this head.",
        SelfAttention,
        "self.query_key_value_projection(x_BTD)",
    ),
    "keys": Step(
        "Keys",
        "K = x W_K",
        "What each token offers to be found by, in this head.",
        SelfAttention,
        "query, key, value = self.project",
    ),
    "values": Step(
        "Values",
        "V = x W_V",
        "What each token hands over when it is looked at.",
        SelfAttention,
        "query, key, value = self.project",
    ),
    "positions": Step("Places", "pos", "Where each token stands.", SelfAttention, "torch.arange(x_BTD.shape[1]"),
    "turned_queries": Step(
        "Queries, turned",
        "R(pos) Q",
        "Each pair of numbers is turned by an angle that grows with the position.",
        SelfAttention,
        "rotate(query, positions)",
    ),
    "turned_keys": Step(
        "Keys, turned",
        "R(pos) K",
        "Turned likewise, so that their product depends on the distance.",
        SelfAttention,
        "rotate(query, positions)",
    ),
    "distances": Step(
        "Keys of distances",
        "R = W_R sin/cos(d)",
        "A key for every distance, in place of positions.",
        RelativeAttention,
        "self.distance_projection(sinusoids_XD)",
    ),
    "content_scores": Step(
        "Scores by content",
        "(Q + u) Kᵀ",
        "How well a key's token suits the query.",
        RelativeScoring,
        "by_content @ key_BHSK",
    ),
    "distance_scores": Step(
        "Scores by distance", "(Q + v) Rᵀ", "How well its distance does.", RelativeScoring, "table_HNX = by_distance"
    ),
    "segment_scores": Step(
        "Scores by segment", "(Q + w) s", "Whether it is in the same text.", RelativeScoring, "by_segment ="
    ),
    "scores": Step(
        "Scores", "Q Kᵀ", "One dot product for each pair of a query and a key.", Scoring, "@ key_BHSK.transpose(-1, -2)"
    ),
    "scaled": Step(
        "Divided by √dₖ",
        "Q Kᵀ / √{K}",
        "Keeps the variance at 1, where the softmax still has gradients (paper, 3.2.1).",
        AttentionHeads,
        "1.0 / math.sqrt(self.key_width)",
    ),
    "bias": Step(
        "Bias of positions",
        "b(distance)",
        "What a distance adds to a score.",
        SelfAttention,
        "bias = self._positions[0].bias(positions",
    ),
    "biased": Step(
        "Scores with bias",
        "Q Kᵀ / √{K} + b",
        "Near keys and far keys start from different scores.",
        Scoring,
        "scores_BHTS + self.bias",
    ),
    "masked": Step(
        "Masked",
        "−∞ where hidden",
        "What must not be seen, such as the future, gets −∞ (paper, 3.2.3).",
        attention_weights,
        "masked_fill(~mask",
    ),
    "weights": Step(
        "Softmax", "A = softmax(scores)", "Each row becomes shares that sum to 1.", attention_weights, ".softmax(-1)"
    ),
    "mixed": Step(
        "Weighted values",
        "A V",
        "The values of all keys, mixed by these shares.",
        mixed,
        "weights_BHTS[..., :size] @ value",
    ),
    "joined": Step(
        "Heads joined",
        "Concat(head₁ … head_{H})",
        "The results of all heads, side by side.",
        AttentionHeads,
        "heads_BHTV.transpose(1, 2).flatten(2)",
    ),
    "output": Step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        SelfAttention,
        "self.output_projection(self.mix",
    ),
}
CROSS = {
    "queries": Step(
        "Queries",
        "Q = x W_Q",
        "What each token of the target looks for.",
        MultiHeadAttention,
        "self.query_projection(query_BTD)",
    ),
    "keys": Step(
        "Keys of the source",
        "K = memory W_K",
        "From the encoder's output; computed once.",
        MultiHeadAttention,
        "self.key_value_projection(key_BSD)",
    ),
    "values": Step(
        "Values of the source",
        "V = memory W_V",
        "What the source hands over.",
        MultiHeadAttention,
        "self.key_value_projection(key_BSD)",
    ),
    "output": Step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        MultiHeadAttention,
        "self.output_projection(self._mixed(packed",
    ),
}
RELATIVE = {
    "queries": Step(
        "Queries",
        "Q = x W_Q",
        "What each position looks for.",
        RelativeAttention,
        "split_heads(self.query_key_value_projection(h_BTD)",
    ),
    "scores": Step(
        "Scores", "their sum", "By content, by distance, and by segment.", RelativeScoring, "by_content @ key_BHSK"
    ),
    "scaled": Step(
        "Divided by √dₖ", "scores / √{K}", "Keeps the variance at 1.", RelativeAttention, "1.0 / math.sqrt(key_width)"
    ),
    "joined": Step(
        "Heads joined",
        "Concat(head₁ … head_{H})",
        "The results of all heads, side by side.",
        RelativeAttention,
        "sight.picked(heads_BHTV).transpose(1, 2).flatten(2)",
    ),
    "output": Step(
        "Output projection",
        "Concat · W_O",
        "Back to the width of the model.",
        RelativeAttention,
        "return self.output_projection",
    ),
}
