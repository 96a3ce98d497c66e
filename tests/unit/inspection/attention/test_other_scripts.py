"""Texts in scripts that the vocabulary has no subwords for: tokens are then parts of characters."""

import re

import pytest
import torch

from heedful.model_folder import LoadedModel, ModelConfig
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.tasks.encoding.pipeline import Encoder
from heedful.tasks.labelling.tagger import Tagger
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.translation.pipeline import Translator
from heedful.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer.train(["the red dog runs home"] * 3, 281, mask=True)
V = TOKENIZER.vocabulary_size
TEXTS = {"Chinese": "狗跑回家", "Arabic": "الكلب يجري", "emoji": "dog 🐕‍🦺 runs", "mixed": "a 狗, <b> and é"}


@pytest.fixture(params=TEXTS.values(), ids=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return request.param


def pipeline(name: str):
    torch.manual_seed(5)
    if name == "translator":
        network, kind, family = EncoderDecoder(EncoderDecoderConfig(V, 24, 67)), Translator, "encoder_decoder"
    elif name == "language model":
        network, kind, family = DecoderOnly(DecoderOnlyConfig(V, 24, 67)), LanguageModel, "decoder_only"
    else:
        kind, family = (Tagger, "encoder_only") if name == "tagger" else (Encoder, "encoder_only")
        head = {"head": "tags", "num_labels": 2} if name == "tagger" else {"head": "none"}
        network = EncoderOnly(EncoderOnlyConfig(V, 24, 67, special_tokens=TOKENIZER.special_tokens, **head))
    labels = ("O", "X") if name == "tagger" else ()
    return kind(LoadedModel(network.eval(), ModelConfig(family, "?", network.config, labels=labels), TOKENIZER, "m"))


def read_labels(labels: list[str]) -> str:
    """The text that labels stand for, bytes put together again, without special tokens."""
    joined = b""
    for label in labels:
        if not re.fullmatch("⟨.*⟩", label):
            parts = re.split("<([89A-F][0-9A-F])>", label)
            joined += b"".join(bytes.fromhex(each) if n % 2 else each.encode() for n, each in enumerate(parts))
    return joined.decode("utf-8")


@pytest.mark.parametrize("name", ["translator", "language model", "encoder", "tagger"])
def test_labels_are_characters_or_the_bytes_of_one(name: str, text: str) -> None:
    document = pipeline(name).attention(text).to_json()
    assert "\ufffd" not in str([document["sequences"], document["outputs"]])
    labels = document["sequences"]["source"]
    assert read_labels(labels).split() == text.split()
    # Not all alike: what differs in the text differs on the page.
    assert len(set(labels)) > len(set(text)) / 2
    assert document["texts"][0] == text


def test_the_target_is_given_as_text_too(text: str) -> None:
    translator = pipeline("translator")
    document = translator.attention("red dog", text).to_json()
    assert document["texts"] == ["red dog", text]
    assert read_labels(document["sequences"]["target"]).strip() == text
    found = translator.attention(text).to_json()
    (translation,) = translator.translate([text])
    assert found["texts"] == [text, translation.text]


def test_tokens_with_scores_are_characters_or_the_bytes_of_one() -> None:
    translator = pipeline("translator")
    (translation,) = translator.translate(["red dog"], prefix="狗")
    assert translation.tokens[:4] == [" ", "<E7>", "<8B>", "<97>"]
