"""Encoders with random weights: what holds for any model."""

import random
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.errors import UserError
from heedful.model_folder import LoadedModel, ModelConfig, model_card, save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.encoding.pipeline import Encoder, ShortenedTextWarning
from heedful.tasks.labelling.classifier import Classifier, SingleTextWarning
from heedful.tasks.labelling.tagger import Tagger
from heedful.tasks.loading import load
from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel, UnfilledTextWarning
from heedful.text.tokenizer import Tokenizer

WORDS = ["a", "red", "dog", "runs", "the", "sea", "is", "blue", "and", "sun"]
LABELS = ("yes", "no", "maybe")
HEADS = {"none": Encoder, "classes": Classifier, "tags": Tagger, "masked": MaskedLanguageModel}


def texts(count: int, longest: int) -> list[str]:
    draw = random.Random(count)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(texts(50, 9), 277, mask=True)


@pytest.fixture(scope="module")
def build(tokenizer: Tokenizer):
    def make(head: str, positions: str = "rotary", segments: int = 2, **settings) -> Encoder:
        torch.manual_seed(1)
        stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=4))
        labels = LABELS if head in ("classes", "tags") else ()
        config = EncoderOnlyConfig(
            tokenizer.vocabulary_size, 24, 61, positions, EmbeddingConfig(segments=segments), stack, head=head,
            num_labels=len(labels), special_tokens=tokenizer.special_tokens, **settings,
        )  # fmt: skip
        network = EncoderOnly(config).eval()
        return HEADS[head](LoadedModel(network, ModelConfig("encoder_only", "?", config, labels=labels), tokenizer))

    return make


@pytest.mark.parametrize("pooling", ["mean", "class_token"])
def test_vectors_do_not_depend_on_the_batch(build, pooling: str) -> None:
    lines = texts(150, 27)
    encoder = build("none")
    found = [encoder.embed(lines, pooling=pooling, batch_size=size) for size in (1, 7, 64)]
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    assert np.array_equal(encoder.embed(lines[3]), encoder.embed(lines)[3])


def test_labels_do_not_depend_on_the_batch(build) -> None:
    lines = texts(150, 27)
    for pipeline in (build("classes").classify, build("tags", "learned").tag):
        found = [pipeline(lines, batch_size=size) for size in (1, 7, 64)]
        assert found[0] == found[1] == found[2]


def test_vectors_are_means_over_real_tokens_special_ones_included(build) -> None:
    encoder = build("masked")
    ids = [1, *encoder.tokenizer.encode("the red dog"), 2]
    with torch.inference_mode():
        hidden = encoder.model.hidden(torch.tensor([ids]), torch.tensor([len(ids)]))[0].numpy()
    for pooling, expected in (("mean", hidden.mean(0)), ("class_token", hidden[0])):
        plain = encoder.embed("the red dog", pooling=pooling, normalize=False)
        np.testing.assert_allclose(plain, expected, atol=1e-5)
        np.testing.assert_allclose(
            encoder.embed("the red dog", pooling=pooling), plain / np.linalg.norm(plain), atol=1e-6
        )
    assert encoder.embed([]).shape == (0, 24)


def test_a_classification_ranks_all_labels_and_blank_texts_have_none(build) -> None:
    found = build("classes").classify(["red dog", " ", "", ("red", "dog")])
    assert [bool(each.label) for each in found] == [True, False, False, True]
    shares = [share for _, share in found[0].ranking]
    assert sum(shares) == pytest.approx(1.0) and shares == sorted(shares, reverse=True)
    assert {label for label, _ in found[0].ranking} == set(LABELS)
    assert (found[0].label, found[0].probability) == found[0].ranking[0]
    assert found[0].ranking != found[3].ranking  # a pair is not the same as its words in one text


def test_long_texts_are_read_without_their_middle(build) -> None:
    classifier = build("classes")
    long = "red dog " * 20 + "sea " * 20 + "blue sun " * 20
    with pytest.warns(ShortenedTextWarning, match="longer than the 61 tokens") as caught:
        found = classifier.classify(["dog", "", long])
    assert caught[0].message.index == 2
    with pytest.warns(ShortenedTextWarning):
        assert found[2] == classifier.classify(long.replace("sea ", "sun "))


def test_every_word_is_tagged_also_in_long_sentences(build) -> None:
    tagger = build("tags")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tagger.tag(["the red  dog", "", "blue sea " * 99, ["a dog", "runs"]])
    assert [len(sentence) for sentence in found] == [3, 0, 198, 2]
    assert [word.word for word in found[0]] == ["the", "red", "dog"]
    assert all(word.tag in LABELS and 0 < word.probability <= 1 for sentence in found for word in sentence)


def test_masks_are_filled_at_their_places(build) -> None:
    model = build("masked")
    tokenizer, special = model.tokenizer, model.model.special_tokens
    whole = [special.start, *tokenizer.encode("the red dog, and"), special.end]
    place = whole.index(tokenizer.encode("red")[0])
    whole[place] = special.mask
    with torch.inference_mode():
        logits = model.model(torch.tensor([whole]), torch.tensor([len(whole)]))[0, place]
    ordinary = [token for token in range(tokenizer.vocabulary_size) if token not in special.ids]
    expected = logits[ordinary].softmax(0)
    (found,) = model.fill("the [MASK] dog, and", top=len(ordinary))
    assert [each.probability for each in found] == pytest.approx(sorted(expected.tolist(), reverse=True), abs=1e-5)
    assert len(model.fill("[MASK], [MASK] dog [MASK]", top=2)) == 3
    assert model.fill("the [MASK] dog, and", top=len(ordinary) + len(special.ids)) == [found]


@pytest.mark.parametrize("rest", [" dog runs", ", dog", "s and", "", "1 dog", "\u0301 dog", "19", "\u20ac dog", "'s"])
def test_what_follows_a_mask_is_encoded_as_within_a_text(build, rest: str) -> None:
    model = build("masked")
    ids = model.tokenizer.encode_after(rest)
    assert model.tokenizer.decode([*model.tokenizer.encode("("), *ids]) == "(" + rest


def test_a_text_without_a_mask(build) -> None:
    model = build("masked")
    with pytest.warns(UnfilledTextWarning, match=r"text 2 stays blank: the text has no \[MASK\]") as caught:
        found = model.fill(["the [MASK] sea", "the sea", " "])
    assert found == [model.fill("the [MASK] sea"), [], []] and len(caught) == 1
    with pytest.raises(UserError, match=r"has no \[MASK\]"):
        build("masked").fill("the red dog")
    with pytest.raises(UserError, match="and the model takes 61"):
        build("masked").fill("dog " * 70 + "[MASK]")
    with pytest.raises(UserError, match="batch_size is 0"):
        build("none").embed("dog", batch_size=0)


@pytest.mark.parametrize("head", ["none", "classes", "tags", "masked"])
def test_save_and_load_give_the_same_bits(build, head: str, tmp_path: Path) -> None:
    model = build(head, pooler=True, pooling="class_token")
    task = {"none": "encoder", "classes": "classification", "tags": "tagging", "masked": "masked_language_model"}[head]
    config = ModelConfig("encoder_only", task, model.config.model, labels=model.config.labels)
    save_model_folder(tmp_path, model.model, model.tokenizer, config, model_card("a", "b", "c", "d", {}))
    loaded = load(tmp_path, engine="torch")
    assert type(loaded) is HEADS[head]
    lines = texts(7, 13)
    assert np.array_equal(loaded.embed(lines), model.embed(lines))
    framed = model.frame(lines)
    assert all(
        np.array_equal(one, other) for one, other in zip(loaded.logits(framed, 3), model.logits(framed, 3), strict=True)
    )
    by_core = load(tmp_path, engine="core")
    assert type(by_core) is HEADS[head]
    np.testing.assert_allclose(by_core.embed(lines), model.embed(lines), atol=1e-5)
    for one, other in zip(by_core.logits(framed, 3), model.logits(framed, 3), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_single_text_is_remarked_on_by_a_model_that_learned_from_pairs(build) -> None:
    model = build("classes")
    texts = ["the red dog", ("the red dog", "a sea"), "", "red\tdog"]
    plain = model.classify(texts)
    model.config = replace(model.config, pairs_only=True)
    with pytest.warns(SingleTextWarning) as caught:
        assert model.classify(texts) == plain
    assert [each.message.index for each in caught] == [0, len(texts) - 1]
    assert str(caught[0].message).startswith("text 1 is a single text, but this model learned from pairs")


def test_pairs_are_taken_by_a_model_that_learned_from_them_without_segments(build) -> None:
    model = build("classes", segments=0)
    assert not model.takes_pairs
    with pytest.raises(UserError, match="text 2 is a pair, but this model takes single texts"):
        model.classify(["dog", ("red", "dog")])
    model.config = replace(model.config, pairs_only=True)
    assert model.takes_pairs
    (logits,) = model.logits(model.frame([("red", "dog")]), 1)
    assert model.classify(("red", "dog")).label == LABELS[logits.argmax()]
