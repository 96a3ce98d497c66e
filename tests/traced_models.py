"""Small models of every family, with random weights and sizes that no two axes share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from heedful.inspection.trace.trace import Trace
from heedful.model_folder import LoadedModel, ModelConfig
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision, normalise
from heedful.models.xlnet import XLNet
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.tasks.labelling.classifier import Classifier
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel
from heedful.tasks.translation.pipeline import Translator
from heedful.text.tokenizer import Tokenizer

SOURCE, TARGET = "the red dog runs home", "blue sea, red sun"
LABELS = ("yes", "no", "maybe")
TOKENIZER = Tokenizer.train([SOURCE, TARGET] * 3, 281, mask=True)
V, END = TOKENIZER.vocabulary_size, TOKENIZER.special_tokens.end
IMAGE = np.random.default_rng(1).integers(0, 256, (13, 17), dtype=np.uint8)


@dataclass(frozen=True)
class Case:
    """A pipeline, a trace of it, and the logits of its model for the same input."""

    pipeline: object
    trace: Callable[[], Trace]
    logits: Callable[[nn.Module], Tensor]


def loaded(network: nn.Module, family: str, labels: tuple[str, ...] = ()) -> LoadedModel:
    with torch.no_grad():
        for parameter in network.parameters():  # peaked attention, so that heads differ
            parameter.add_(torch.randn(parameter.shape) * 0.3)
    return LoadedModel(network.eval(), ModelConfig(family, "?", network.config, labels=labels), TOKENIZER, "a model")


def stack(norm: str = "post", activation: str = "relu", window: int | None = None, **attention) -> StackConfig:
    heads = AttentionConfig(**{"num_heads": 3, "key_width": 6, "value_width": 5, **attention})
    inner = FeedForwardConfig(inner_width=19, activation=activation)
    return StackConfig(num_layers=2, norm=norm, attention=heads, feed_forward=inner, local_window=window)


def encoder_decoder(positions: str = "sinusoidal", **settings) -> Case:
    own = stack(**settings)
    network = EncoderDecoder(EncoderDecoderConfig(V, 22, 17, positions, encoder=own, decoder=own))
    pipeline = Translator(loaded(network, "encoder_decoder"))
    source = torch.tensor([[*TOKENIZER.encode(SOURCE), END]])
    target = torch.tensor([[TOKENIZER.special_tokens.start, *TOKENIZER.encode(TARGET)]])
    return Case(pipeline, lambda: pipeline.trace(SOURCE, TARGET), lambda model: model(source, target))


def language_model(network: nn.Module, family: str) -> Case:
    pipeline = LanguageModel(loaded(network, family))
    ids = torch.tensor([[END, *TOKENIZER.encode(SOURCE)]])
    return Case(pipeline, lambda: pipeline.trace(SOURCE), lambda model: model.output(model.hidden(ids)))


def decoder_only(positions: str, **settings) -> Case:
    config = DecoderOnlyConfig(V, 22, 67, positions, stack=stack(norm="pre", **settings))
    return language_model(DecoderOnly(config), "decoder_only")


def xlnet() -> Case:
    return language_model(XLNet(XLNetConfig(V, 22, 67, 11, stack=stack(), segments=True)), "xlnet")


def encoder_only(head: str) -> Case:
    embedding = EmbeddingConfig(segments=2, norm=True, scaled=False)
    special = TOKENIZER.special_tokens
    labels = LABELS if head == "classes" else ()
    config = EncoderOnlyConfig(
        V, 22, 67, "learned", embedding, stack(), head=head, num_labels=len(labels), special_tokens=special,
        pooling="class_token", pooler=True,
    )  # fmt: skip
    kind = Classifier if head == "classes" else MaskedLanguageModel
    pipeline = kind(loaded(EncoderOnly(config), "encoder_only", labels))
    text = (SOURCE, TARGET) if head == "classes" else SOURCE
    row = pipeline.frame([text])[0]
    segments = (torch.arange(len(row.ids)) >= row.first_length).long()[None]
    ids, lengths = torch.tensor([row.ids]), torch.tensor([len(row.ids)])
    return Case(pipeline, lambda: pipeline.trace(text), lambda model: model(ids, lengths, segments))


def vision(pooling: str) -> Case:
    config = VisionConfig((13, 17), (5, 4), 1, 3, 22, pooling, stack=stack(norm="pre", activation="gelu"))
    pipeline = ImageClassifier(loaded(Vision(config), "vision", LABELS))
    pixels = normalise(torch.from_numpy(IMAGE)[None, None], config.pixels)
    return Case(pipeline, lambda: pipeline.trace(IMAGE), lambda model: model(pixels))


CASES = {
    "encoder-decoder": lambda: encoder_decoder(),
    "pre-norm, learned, shared heads": lambda: encoder_decoder("learned", norm="pre", num_key_value_heads=1),
    "relative buckets": lambda: encoder_decoder("relative_buckets", activation="gelu"),
    "additive": lambda: encoder_decoder("none", scoring="additive"),
    "decoder-only, rotary, window, shared": lambda: decoder_only(
        "rotary", window=5, num_heads=4, num_key_value_heads=2, activation="swiglu"
    ),
    "decoder-only, alibi": lambda: decoder_only("alibi", activation="silu"),
    "xlnet": xlnet,
    "pair": lambda: encoder_only("classes"),
    "masked": lambda: encoder_only("masked"),
    "class token": lambda: vision("class_token"),
    "mean of patches": lambda: vision("mean"),
}
