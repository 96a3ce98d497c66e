"""All claims, in the order of the paper, without torch."""

from __future__ import annotations

from heedful.claims.claim import Claim

PAPER = "Attention Is All You Need"

_CLAIMS = (
    Claim(
        "variance",
        "Why scores are scaled",
        "The dot product of queries and keys whose components have unit variance has variance d_k; dividing by "
        "sqrt(d_k) brings it to 1.",
        f"{PAPER}, 3.2.1, footnote 4",
        "Random vectors for d_k from 4 to 1024, and the real queries and keys of a trained model.",
        ("layers/attention.py:Scoring", "layers/multi_head_attention.py:AttentionHeads.__init__"),
    ),
    Claim(
        "saturation",
        "Large scores stop the gradient",
        "Large dot products push the softmax into regions where it has extremely small gradients.",
        f"{PAPER}, 3.2.1",
        "The norm of the softmax's Jacobian against d_k, scaled and not; training with and without the factor.",
        ("layers/attention.py:attention_weights", "layers/multi_head_attention.py:AttentionHeads.mix"),
    ),
    Claim(
        "scorings",
        "Additive and dot-product attention",
        "Additive and dot-product attention are alike for small d_k; without scaling, dot-product attention falls "
        "behind for large d_k; dot-product attention is faster and takes less memory.",
        f"{PAPER}, 3.2.1",
        "Quality, time and memory against d_k, of three scorings.",
        ("layers/attention.py:Scoring", "layers/additive_scores.py:additive_scores"),
    ),
    Claim(
        "heads",
        "Several heads",
        "Several heads are better than one, too many are worse again, and a small d_k hurts.",
        f"{PAPER}, 3.2.2 and 6.2, Table 3, rows A and B",
        "Table 3's rows at small scale: heads at the same cost, and narrower keys.",
        ("layers/multi_head_attention.py:AttentionHeads", "settings/attention.py:AttentionConfig"),
    ),
    Claim(
        "head-roles",
        "Heads learn different relations",
        "Individual heads learn to perform different tasks.",
        f"{PAPER}, 4 and the appendix on attention visualizations",
        "Which heads of a trained translator look at a fixed distance, which align words, which rest on delimiters, "
        "and what is lost without each.",
        ("layers/multi_head_attention.py:MultiHeadAttention", "layers/multi_head_attention.py:split_heads"),
    ),
    Claim(
        "masking",
        "The mask keeps the future out",
        "Masking prevents positions from attending to subsequent positions, so that a prediction depends only on what "
        "comes before.",
        f"{PAPER}, 3.1 and 3.2.3",
        "The gradient of every output to every later input, which must be exactly zero; and what leaks without the "
        "mask, as loss.",
        ("layers/masks.py:causal_mask", "layers/attention.py:attention_weights"),
    ),
    Claim(
        "depth",
        "Residuals and norms make depth trainable",
        "Residual connections and layer normalization around each sub-layer make deep stacks trainable, before the "
        "sub-layer or after it.",
        f"{PAPER}, 3.1; GPT-3, 2.1 (pre-normalization)",
        "Gradient norms by layer in stacks of 2 to 48 layers, with and without each, pre and post; training of a deep "
        "one.",
        ("layers/blocks.py:PostNorm", "layers/blocks.py:PreNorm", "layers/stacks.py:quieten"),
    ),
    Claim(
        "feed-forward",
        "The feed-forward network is position-wise",
        "The feed-forward network is applied to each position separately and identically, with an inner width of four "
        "times the model's.",
        f"{PAPER}, 3.3",
        "Positions shuffled before and after; inner widths from 1 to 8 times the model's.",
        ("layers/feed_forward.py:FeedForward",),
    ),
    Claim(
        "embeddings",
        "Embeddings, scaled and shared",
        "Embeddings are multiplied by sqrt(d_model), and the embedding layers share their matrix with the output "
        "layer.",
        f"{PAPER}, 3.4",
        "Lengths of embeddings beside those of positions; quality with and without scaling and sharing.",
        ("layers/embeddings.py:TokenEmbedding", "models/encoder_decoder.py:EncoderDecoder.__init__"),
    ),
    Claim(
        "permutation",
        "A set, not a sequence",
        "Attention is permutation-equivariant: it sees a set. Positions break that.",
        f"{PAPER}, 3.5",
        "Outputs under random permutations of the inputs, with each position scheme; and a task that needs the order, "
        "with and without positions.",
        ("layers/positions/scheme.py:PositionScheme", "layers/stacks.py:Encoder"),
    ),
    Claim(
        "position-schemes",
        "Sinusoidal and learned positions",
        "Sinusoidal and learned positions give nearly identical results; sinusoidal ones extend to sequences longer "
        "than those of the training.",
        f"{PAPER}, 3.5 and Table 3, row E",
        "The same model with every scheme: its loss, and its loss at two and four times the length.",
        ("layers/positions/sinusoidal.py:SinusoidalPositions", "layers/positions/learned.py:LearnedPositions"),
    ),
    Claim(
        "resolution",
        "Another resolution than in training",
        "A model can be trained at one resolution and used at another by interpolating its positions.",
        "ViT (Dosovitskiy et al., 2021), 3.2",
        "A ViT at 0.5 to 2 times its resolution: positions interpolated, cropped or tiled, and fine-tuned.",
        ("layers/grid_positions.py:interpolate", "models/vision.py:Vision.tokens"),
    ),
    Claim(
        "complexity",
        "Operations per layer",
        "Self-attention takes n^2 d operations and O(1) sequential ones, recurrence n d^2 and O(n), convolution k n "
        "d^2 and O(1); restricted attention r n d.",
        f"{PAPER}, 4, Table 1",
        "The time of a layer against n, forward and backward: fitted exponents, and where they cross.",
        (
            "layers/multi_head_attention.py:SelfAttention",
            "layers/recurrent.py:RecurrentLayer",
            "layers/convolutions.py:Neighbourhood",
        ),
    ),
    Claim(
        "long-range",
        "Long-range dependencies",
        "Self-attention connects all positions in a constant number of steps, recurrence in O(n): long-range "
        "dependencies are easier to learn.",
        f"{PAPER}, 4",
        "Recall of a token 8 to 512 positions away by a Transformer, an LSTM and a GRU of equal size; the gradient "
        "from the output to the far token.",
        ("layers/attention.py:attend_explicit", "layers/recurrent.py:RecurrentLayer.forward"),
    ),
    Claim(
        "local-attention",
        "Full attention against local windows",
        "Self-attention restricted to a neighbourhood is cheaper for long sequences, at the cost of longer paths.",
        f"{PAPER}, 4; GPT-3, 2.1 (locally banded attention)",
        "Quality on text and over a distance against the window; time against n, as a mask and in blocks.",
        ("layers/masks.py:window_mask", "layers/multi_head_attention.py:SelfAttention.attend_within"),
    ),
    Claim(
        "parallel-training",
        "No recurrence, hence parallel training",
        "Without recurrence training is parallel within a sequence, and takes significantly less time.",
        f"{PAPER}, 1 and 4",
        "Tokens per second, and the loss over seconds and over steps, of a Transformer, an LSTM and a GRU of equal "
        "size.",
        ("models/decoder_only.py:DecoderOnly.hidden", "layers/recurrent.py:RecurrentLayer.forward"),
    ),
    Claim(
        "batches",
        "Batches of equal lengths",
        "Sentence pairs are batched together by approximate length.",
        f"{PAPER}, 5.1",
        "Padding share, tokens per second and loss at equal time, bucketed and not; the size of batches and the "
        "length of rows.",
        ("prepared/batches.py:BucketedBatches",),
    ),
    Claim(
        "sizes",
        "Bigger models, dropout, smoothing",
        "Bigger models are better; dropout helps to avoid over-fitting; label smoothing improves accuracy; learned "
        "positions are alike.",
        f"{PAPER}, 5.4 and 6.2, Table 3, rows C, D and E",
        "Table 3's rows at small scale: sizes, dropout and label smoothing with little data, learned positions.",
        ("settings/stack.py:StackConfig", "layers/dropout.py:Dropout", "tasks/cross_entropy.py:output_cross_entropy"),
    ),
    Claim(
        "families",
        "What each family is for",
        "An encoder reads a whole text, a decoder goes on with one, and an encoder-decoder makes one text of another.",
        f"{PAPER}, 3.1; BERT (Devlin et al., 2019), 3; GPT-3 (Brown et al., 2020), 2",
        "The same blocks as each family on three tasks; and what happens with the wrong mask.",
        (
            "models/encoder_only.py:EncoderOnly.hidden",
            "models/decoder_only.py:DecoderOnly.hidden",
            "models/encoder_decoder.py:EncoderDecoder.hidden",
        ),
    ),
    Claim(
        "objectives",
        "Next token, masks, two streams",
        "GPT predicts the next token, BERT fills masks from both sides, and XLNet's two streams do both, in any order.",
        "XLNet (Yang et al., 2019), 2; BERT, 3.1; GPT-3, 2",
        "What each can fill after the same time of training: the end of a text, and a hole in its middle.",
        (
            "models/xlnet.py:XLNet.predict",
            "tasks/language_modeling/permutation.py:permutation_loss",
            "models/encoder_only.py:MaskedTransform",
        ),
    ),
    Claim(
        "tokens",
        "Words, pixels, patches",
        "The same Transformer takes words, pixels or patches of an image as its tokens; smaller patches cost more and "
        "tell more.",
        "ViT, 3.1 and 4.1",
        "Words, characters, pixels and patches on the same blocks: accuracy and time; the size of patches against "
        "both.",
        ("layers/patches.py:PatchEmbedding", "models/vision.py:Vision", "layers/embeddings.py:TokenEmbedding"),
    ),
)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in _CLAIMS}
