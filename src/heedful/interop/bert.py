"""BERT in Hugging Face's layout, with the heads for masked tokens, classes and tags, or without one."""

from __future__ import annotations

from torch import Tensor

from heedful.config import shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.mapping import Imported, Tensors, activation, label_names
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig, Head
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens

TASKS: dict[Head, str] = {
    "masked": "masked_language_model",
    "classes": "classification",
    "tags": "tagging",
    "none": "encoder",
}
MASKED = "cls.predictions"
CLASSIFIER = "classifier"


def convert(config: ForeignConfig, tensors: Tensors) -> Imported:
    """BertModel, BertForMaskedLM, BertForSequenceClassification or BertForTokenClassification."""
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in tensors else ""
    head = _head(config, tensors)
    # A computed buffer, and the head that BERT was pretrained with besides that for masked tokens.
    tensors.drop(lambda name: name.endswith("embeddings.position_ids") or name.startswith("cls.seq_relationship."))
    pooler = f"{prefix}pooler.dense"
    found = _embeddings(tensors, f"{prefix}embeddings")
    for layer in range(config.integer("num_hidden_layers")):
        found |= _block(tensors, f"{prefix}encoder.layer.{layer}", f"blocks.{layer}")
    if head in ("masked", "tags"):  # these look at tokens
        tensors.drop(lambda name: name.startswith(pooler))
    has_pooler = f"{pooler}.weight" in tensors
    if has_pooler:
        found |= tensors.take_layer(pooler, "pooler.0")
    if head == "masked":
        found |= _masked_head(tensors)
    labels = label_names(config, as_words=head == "tags") if head in ("classes", "tags") else ()
    if labels:
        found |= tensors.take_layer(CLASSIFIER, "output")
    return Imported("encoder_only", TASKS[head], _settings(config, head, has_pooler, len(labels)), found, labels)


def _head(config: ForeignConfig, tensors: Tensors) -> Head:
    """The head; classes and tags have the same tensors, and only the architecture's name tells them apart."""
    if f"{MASKED}.transform.dense.weight" in tensors:
        return "masked"
    if f"{CLASSIFIER}.weight" not in tensors:
        return "none"
    names = config.value("architectures") or ["BertForSequenceClassification"]
    heads: dict[str, Head] = {"BertForSequenceClassification": "classes", "BertForTokenClassification": "tags"}
    name = names[0] if isinstance(names, list) else names
    if not isinstance(name, str) or name not in heads:
        raise config.error(
            f"a classifier of the architecture {shown(name)} is not supported: heedful knows {', '.join(heads)}"
        )
    return heads[name]


def _embeddings(tensors: Tensors, theirs: str) -> dict[str, Tensor]:
    return {
        "embedding.table.weight": tensors.take(f"{theirs}.word_embeddings.weight", 2),
        "positions.table": tensors.take(f"{theirs}.position_embeddings.weight"),
        "embedding.segments.weight": tensors.take(f"{theirs}.token_type_embeddings.weight"),
        **_norm(tensors, f"{theirs}.LayerNorm", "embedding.norm"),
    }


def _block(tensors: Tensors, theirs: str, ours: str) -> dict[str, Tensor]:
    attention = f"{theirs}.attention"
    projections = [f"{attention}.self.{name}" for name in ("query", "key", "value")]
    return {
        **tensors.take_packed(projections, f"{ours}.attention.query_key_value_projection"),
        **tensors.take_layer(f"{attention}.output.dense", f"{ours}.attention.output_projection"),
        **_norm(tensors, f"{attention}.output.LayerNorm", f"{ours}.attention_residual.norm"),
        **tensors.take_layer(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.inner_projection"),
        **tensors.take_layer(f"{theirs}.output.dense", f"{ours}.feed_forward.output_projection"),
        **_norm(tensors, f"{theirs}.output.LayerNorm", f"{ours}.feed_forward_residual.norm"),
    }


def _masked_head(tensors: Tensors) -> dict[str, Tensor]:
    # The matrix is that of the embeddings, and the bias may have either of two names, or both.
    tensors.drop(lambda name: name == f"{MASKED}.decoder.weight")
    both = f"{MASKED}.bias" in tensors
    if both:
        tensors.drop(lambda name: name == f"{MASKED}.decoder.bias")
    return {
        **tensors.take_layer(f"{MASKED}.transform.dense", "transform.dense"),
        **_norm(tensors, f"{MASKED}.transform.LayerNorm", "transform.norm"),
        "output.bias": tensors.take(f"{MASKED}.bias" if both else f"{MASKED}.decoder.bias"),
    }


def _norm(tensors: Tensors, theirs: str, ours: str) -> dict[str, Tensor]:
    """A norm, whose parameters old files call gamma and beta."""
    if f"{theirs}.gamma" in tensors:
        return {f"{ours}.weight": tensors.take(f"{theirs}.gamma"), f"{ours}.bias": tensors.take(f"{theirs}.beta")}
    return tensors.take_layer(theirs, ours)


def _settings(config: ForeignConfig, head: Head, pooler: bool, num_labels: int) -> EncoderOnlyConfig:
    config.require("position_embedding_type", "absolute", "absolute")
    config.require("is_decoder", False, False)
    if head == "masked":
        config.require("hidden_act", "gelu", "gelu")
        config.require("tie_word_embeddings", True, True)
    if head == "classes":
        config.require("problem_type", "single_label_classification", "single_label_classification")
    epsilon = config.number("layer_norm_eps", 1e-12)
    return EncoderOnlyConfig(
        vocabulary_size=config.integer("vocab_size"),
        width=config.integer("hidden_size"),
        max_length=config.integer("max_position_embeddings", lowest=4),
        embedding=EmbeddingConfig(False, config.integer("type_vocab_size", 2), True, epsilon),
        stack=StackConfig(
            num_layers=config.integer("num_hidden_layers"),
            norm="post",
            dropout=config.share("hidden_dropout_prob", 0.1),
            attention=AttentionConfig(
                config.integer("num_attention_heads"), dropout=config.share("attention_probs_dropout_prob", 0.1)
            ),
            feed_forward=FeedForwardConfig(
                config.integer("intermediate_size"), activation(config, "hidden_act", "gelu")
            ),
            norm_epsilon=epsilon,
        ),
        pooling="class_token",
        pooler=pooler,
        head=head,
        num_labels=num_labels,
        special_tokens=_special_tokens(config, head),
    )


def _special_tokens(config: ForeignConfig, head: Head) -> SpecialTokens:
    """By their names in the vocabulary; if there is none, so that no text can be given, by their places in BERT's."""
    size, tokens = config.integer("vocab_size"), config.tokens

    def found(setting: str, usual_name: str, usual: int | None) -> int | None:
        name = usual_name if tokens is None else tokens.special_name(setting, usual_name)
        number = usual if tokens is None else tokens.vocabulary.get(name)
        if number is not None and not 0 <= number < size:
            raise config.error(f"vocab_size is {size}, but the token {name} has the id {number}")
        return number

    def needed(setting: str, usual_name: str, usual: int) -> int:
        number = found(setting, usual_name, usual)
        if number is None:
            assert tokens is not None
            name = tokens.special_name(setting, usual_name)
            raise UserError(
                f"{tokens.file} has no token {name}, which the model needs: name it as {setting} in "
                f"{tokens.settings.file.name}"
            )
        return number

    pad = found("pad_token", "[PAD]", None)
    return SpecialTokens(
        pad=config.token("pad_token_id", 0, size) if pad is None else pad,
        start=needed("cls_token", "[CLS]", 101),
        end=needed("sep_token", "[SEP]", 102),
        mask=needed("mask_token", "[MASK]", 103) if head == "masked" else found("mask_token", "[MASK]", 103),
        unknown=found("unk_token", "[UNK]", 100),
    )
