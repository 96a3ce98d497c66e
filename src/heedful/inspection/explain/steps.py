"""The name, formula and purpose of each step of the computation, and the code that computes it."""

from __future__ import annotations

from heedful.inspection.explain.attention_steps import ATTENTION, CROSS, RELATIVE
from heedful.inspection.explain.step import Step
from heedful.layers.blocks import PostNorm, PreNorm
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.feed_forward import FeedForward
from heedful.layers.grid_positions import GridPositions
from heedful.layers.patches import PatchEmbedding

EMBEDDING = {
    "ids": Step("Token ids", "text → ids", "Each token is a number: its row in the table of embeddings."),
    "vectors": Step(
        "Embeddings", "x = E[id]", "The row of the table that belongs to each token.", TokenEmbedding, "self.table(ids)"
    ),
    "scaled": Step(
        "Times √d",
        "x · √d_model",
        "Makes embeddings as large as what positions add (paper, 3.4).",
        TokenEmbedding,
        "math.sqrt(width)",
    ),
    "positions": Step(
        "Positions",
        "PE(pos)",
        "Attention sees a set: this tells it where each token stands (paper, 3.5).",
        TokenEmbedding,
        "self.positions.add",
    ),
    "segments": Step(
        "Segments", "+ s", "Which text of a pair a token belongs to.", TokenEmbedding, "self.segments(torch"
    ),
    "sum": Step(
        "Sum",
        "E[id] + PE + s",
        "All that is known of a token before it meets the others.",
        TokenEmbedding,
        "x_BTD = self.positions.add",
    ),
    "output": Step(
        "Into the first block",
        "x₀",
        "A row per token, which the blocks will change step by step.",
        TokenEmbedding,
        "return self.dropout",
    ),
}
RESIDUAL = {
    "normed": Step(
        "Norm before",
        "LayerNorm(x)",
        "Mean 0 and variance 1 in each row, then a learned scale.",
        PreNorm,
        "x + self.dropout(sublayer(self.norm(x)))",
    ),
    "sum": Step(
        "Residual",
        "x + Sublayer(x)",
        "What came in is kept, and what was found is added to it.",
        PostNorm,
        "self.norm(x + self.dropout(sublayer(x)))",
    ),
}
AFTER_SUM = Step(
    "Norm",
    "LayerNorm(x + Sublayer(x))",
    "Mean 0 and variance 1 in each row, then a learned scale.",
    PostNorm,
    "self.norm(x + self.dropout(sublayer(x)))",
)
AFTER_NORM = Step(
    "Residual",
    "x + Sublayer(LayerNorm(x))",
    "What came in is kept, and what was found is added to it.",
    PreNorm,
    "x + self.dropout(sublayer(self.norm(x)))",
)
FEED_FORWARD = {
    "inner": Step(
        "Inner layer",
        "x W₁ + b₁",
        "Each row by itself, to a larger width (paper, 3.3).",
        FeedForward,
        "self.inner_projection(x_BTD)",
    ),
    "activated": Step(
        "Activation",
        "{activation}(x W₁ + b₁)",
        "What makes the network more than one matrix.",
        FeedForward,
        "self.activation(self.inner",
    ),
    "output": Step(
        "Outer layer", "… W₂ + b₂", "Back to the width of the model.", FeedForward, "return self.output_projection"
    ),
}
AROUND = {
    "encoder_norm.output": Step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "decoder_norm.output": Step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "norm.output": Step("Last norm", "LayerNorm(x)", "A pre-norm stack ends in a norm of its own."),
    "embedding.vectors": Step("Embeddings", "x = E[id]", "The row of the table that belongs to each token."),
    "pooled": Step("The whole as one row", "x₀, or a mean", "What the head looks at."),
    "pooler.output": Step("Pooler", "tanh(x W + b)", "A last layer before the head."),
    "transform.dense": Step("Dense", "x W + b", "Before a token is compared with the vocabulary."),
    "transform.activated": Step("Activation", "GELU(x W + b)", "As BERT does."),
    "transform.output": Step("Norm", "LayerNorm", "As BERT does."),
    "patches.windows": Step(
        "Patches",
        "image → pixels of each patch",
        "An image as a sequence: a row per patch.",
        PatchEmbedding,
        "cut_patches",
    ),
    "patches.output": Step(
        "Patch embeddings",
        "pixels · W + b",
        "Each patch becomes a token.",
        PatchEmbedding,
        "self.projection(patches_BPC)",
    ),
    "positions.output": Step(
        "Positions",
        "a vector per place",
        "Learned, and interpolated at another resolution.",
        GridPositions,
        "return interpolate(",
    ),
    "placed": Step("With positions", "patches + positions", "What is known of each patch before it meets the others."),
    "neighbourhood.output": Step("Neighbourhood", "convolution", "Each token with those next to it."),
    "class_token.output": Step("Class token", "[class; patches]", "A token of its own, which will hold the answer."),
}


def step_of(name: str, *, pre_norm: bool) -> Step:
    """The step that gives the tensor of that name."""
    if name in AROUND:
        return AROUND[name]
    *parts, last = name.split(".")
    part = parts[-1]
    if part == "attention":
        return {**ATTENTION, **(RELATIVE if len(parts) > 3 else {})}[last]
    if part == "cross_attention":
        return {**ATTENTION, **CROSS}[last]
    if part == "feed_forward":
        return FEED_FORWARD[last]
    if part.endswith("residual"):
        return RESIDUAL.get(last) or (AFTER_NORM if pre_norm else AFTER_SUM)
    return EMBEDDING[last]
