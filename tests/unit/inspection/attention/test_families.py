"""Every family, with random weights: the maps are those that the running model computes with."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.inspection.attention.maps import AttentionMaps
from heedful.layers.attention import attend_fused
from heedful.model_folder import LoadedModel, ModelConfig
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.recurrent import Recurrent
from heedful.models.vision import Vision, normalise
from heedful.models.xlnet import XLNet
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.tasks.encoding.pipeline import Encoder
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.tasks.labelling.classifier import Classifier
from heedful.tasks.labelling.tagger import Tagger
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel
from heedful.tasks.translation.pipeline import LongTextWarning, Translator
from heedful.tasks.translation.task import collate
from heedful.text.tokenizer import Tokenizer

SOURCE, TARGET = "the red dog runs home", "blue sea, red sun"
LABELS = ("yes", "no", "maybe")
TOKENIZER = Tokenizer.train([SOURCE, TARGET] * 3, 281, mask=True)
V = TOKENIZER.vocabulary_size
END = TOKENIZER.special_tokens.end


@dataclass(frozen=True)
class Case:
    """A pipeline, one look into it, and its logits for the same input, by any model of its kind."""

    pipeline: object
    look: Callable[[], AttentionMaps]
    logits: Callable[[nn.Module], Tensor]

    @property
    def model(self) -> nn.Module:
        return self.pipeline.model


def loaded(network: nn.Module, family: str, labels: tuple[str, ...] = ()) -> LoadedModel:
    with torch.no_grad():
        for parameter in network.parameters():  # peaked attention, so that heads differ
            parameter.add_(torch.randn(parameter.shape) * 0.3)
    return LoadedModel(network.eval(), ModelConfig(family, "?", network.config, labels=labels), TOKENIZER, "a model")


def stack(**settings) -> StackConfig:
    return StackConfig(num_layers=3, attention=AttentionConfig(**{"num_heads": 4, **settings}))


def translation(network: nn.Module, family: str) -> Case:
    pipeline = Translator(loaded(network, family))
    batch = collate([np.array(TOKENIZER.encode(SOURCE))], [np.array(TOKENIZER.encode(TARGET))])
    return Case(
        pipeline,
        lambda: pipeline.attention(SOURCE, TARGET),
        lambda model: model(batch.source_BS, batch.target_BT, batch.source_lengths_B)[0],
    )


def encoder_decoder(**settings) -> Case:
    config = EncoderDecoderConfig(V, 20, 67, encoder=stack(**settings), decoder=stack(**settings))
    return translation(EncoderDecoder(config), "encoder_decoder")


def recurrent(scoring: str) -> Case:
    layers = RecurrentStackConfig(num_layers=2)
    return translation(Recurrent(RecurrentConfig(V, 20, 22, 67, "gru", scoring, encoder=layers)), "recurrent")


def language_model(network: nn.Module, family: str) -> Case:
    pipeline = LanguageModel(loaded(network, family))
    ids = torch.tensor([[END, *TOKENIZER.encode(SOURCE)]])
    return Case(pipeline, lambda: pipeline.attention(SOURCE), lambda model: model.output(model.hidden(ids))[0])


def decoder_only(**settings) -> Case:
    layers = StackConfig(num_layers=3, norm="pre", local_window=5, attention=AttentionConfig(**settings))
    return language_model(DecoderOnly(DecoderOnlyConfig(V, 24, 67, "rotary", stack=layers)), "decoder_only")


def xlnet() -> Case:
    layers = StackConfig(num_layers=3, attention=AttentionConfig(num_heads=3))
    return language_model(XLNet(XLNetConfig(V, 24, 67, 11, stack=layers)), "xlnet")


def encoder(kind: type[Encoder], head: str, text: str | tuple[str, str]) -> Case:
    torch.manual_seed(3)
    labels = LABELS if head in ("classes", "tags") else ()
    config = EncoderOnlyConfig(
        V, 24, 67, "learned", EmbeddingConfig(segments=2), stack(), head=head, num_labels=len(labels),
        special_tokens=TOKENIZER.special_tokens,
    )  # fmt: skip
    pipeline = kind(loaded(EncoderOnly(config), "encoder_only", labels))
    row = pipeline.frame([text])[0]
    if head == "masked":
        row = row._replace(ids=pipeline._encode_masked(text)[0])
        row = row._replace(first_length=len(row.ids))
    ids, lengths = torch.tensor([row.ids]), torch.tensor([len(row.ids)])
    segments = (torch.arange(len(row.ids)) >= row.first_length).long()[None]
    if head == "tags":
        words = TOKENIZER.encode_batch(text.split())
        ids = torch.tensor([[1, *(token for word in words for token in word), END]])
        lengths, segments = torch.tensor([ids.shape[1]]), torch.zeros_like(ids)
    return Case(pipeline, lambda: pipeline.attention(text), lambda model: model(ids, lengths, segments)[0])


def vision(pooling: str) -> Case:
    config = VisionConfig((13, 17), (5, 4), 1, 3, 20, pooling, stack=stack())
    pipeline = ImageClassifier(loaded(Vision(config), "vision", LABELS))
    image = np.random.default_rng(1).integers(0, 256, (13, 17), dtype=np.uint8)
    pixels = normalise(torch.from_numpy(image)[None, None], config.pixels)
    return Case(pipeline, lambda: pipeline.attention(image), lambda model: model(pixels))


CASES = {
    "encoder-decoder": lambda: encoder_decoder(),
    "grouped heads of odd widths": lambda: encoder_decoder(num_key_value_heads=2, key_width=5, value_width=3),
    "additive": lambda: encoder_decoder(scoring="additive"),
    "decoder-only": lambda: decoder_only(num_heads=4),
    "decoder-only, grouped": lambda: decoder_only(num_heads=4, num_key_value_heads=2),
    "xlnet": xlnet,
    "recurrent, additive": lambda: recurrent("additive"),
    "recurrent, general": lambda: recurrent("general"),
    "encoder": lambda: encoder(Encoder, "none", SOURCE),
    "pair": lambda: encoder(Classifier, "classes", (SOURCE, TARGET)),
    "tagger": lambda: encoder(Tagger, "tags", SOURCE),
    "masked": lambda: encoder(MaskedLanguageModel, "masked", "the [MASK] dog [MASK]"),
    "class token": lambda: vision("class_token"),
    "mean of patches": lambda: vision("mean"),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(5)
    return CASES[request.param]()


@pytest.fixture(scope="module")
def found(case: Case) -> AttentionMaps:
    return case.look()


@torch.inference_mode()
def test_the_fused_output_is_that_of_the_recorded_weights(case: Case, found: AttentionMaps, replay) -> None:
    fused = case.logits(case.model)
    torch.testing.assert_close(case.logits(replay(case.model, found)), fused, atol=2e-5, rtol=1e-5)
    # The comparison can fail: other weights give other logits.
    turned = [replace(each, weights=each.weights[:, :, ::-1].copy()) for each in found.maps]
    assert (case.logits(replay(case.model, replace(found, maps=turned))) - fused).abs().max() > 1e-2


def test_weights_are_shares_and_match_their_labels(found: AttentionMaps) -> None:
    for kind in found.kinds:
        weights, (queries, keys) = found.weights(kind), found.labels(kind)
        assert weights.shape[2:] == (len(queries), len(keys)) and weights.dtype == np.float32
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
        assert found.entropy(kind).shape == found.mean_distance(kind).shape == weights.shape[:2]


def test_the_running_model_is_untouched(case: Case, found: AttentionMaps) -> None:
    held = [module.attend for module in case.model.modules() if hasattr(module, "attend")]
    assert held and not any("Recording" in repr(attend) for attend in held)
    if not isinstance(case.model, XLNet):
        assert all(attend is attend_fused for attend in held)


@torch.inference_mode()
def test_probabilities_are_those_of_the_logits(case: Case, found: AttentionMaps) -> None:
    shares = case.logits(case.model).double().softmax(-1)
    if shares.dim() == 1:
        shares = shares[None]
    for number, output in enumerate(found.outputs):
        row = shares[0] if output.place is None else shares[output.place[1]]
        assert any(abs(output.probability - float(share)) < 1e-5 for share in row), number
        others = [share for _, share in output.runners_up]
        assert others == sorted(others, reverse=True) and len(others) == min(5, len(row) - 1)
        best = max([output.probability, *others])
        assert best == pytest.approx(float(row.max()), abs=1e-5)
        if output.place is not None and output.place[0] == "target":
            assert found.sequences["target"].labels[output.place[1]] == output.token


def test_a_translation_is_decoded_as_translate_does() -> None:
    torch.manual_seed(5)
    pipeline = encoder_decoder().pipeline
    translated = pipeline.translate(SOURCE)
    found = pipeline.attention(SOURCE)
    labels = found.sequences["target"].labels
    assert labels[:-1] == translated.tokens and labels[-1] == "⟨end⟩"
    scores = [np.log(each.probability) for each in found.outputs][: len(translated.token_scores)]
    np.testing.assert_allclose(scores, translated.token_scores, atol=1e-4)
    assert found.sequences["decoder_input"].labels == ["⟨start⟩", *translated.tokens]


def test_others_do_not_notice() -> None:
    """A translation that runs while the same model is looked into, again and again, is the same to the last bit."""
    torch.manual_seed(5)
    pipeline = encoder_decoder().pipeline
    texts = [SOURCE, TARGET, "dog", "red sun " * 7] * 5
    alone = pipeline.translate(texts)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(pipeline.translate, texts)
        looks = [pool.submit(pipeline.attention, SOURCE, TARGET) for _ in range(5)]
        assert running.result() == alone
    first = looks[0].result().weights("cross")
    assert all(np.array_equal(each.result().weights("cross"), first) for each in looks)


def test_the_probabilities_of_a_text_are_those_it_is_scored_by() -> None:
    torch.manual_seed(5)
    pipeline = decoder_only(num_heads=4).pipeline
    found = pipeline.attention("the red", " dog")
    whole = pipeline.attention("the red dog")
    assert found.sequences["source"].labels == whole.sequences["source"].labels
    assert "".join(found.sequences["source"].labels) == "⟨end⟩ the red dog"
    with torch.inference_mode():
        ids = torch.tensor([[END, *TOKENIZER.encode("the red dog")]])
        last = pipeline.model(ids)[0].log_softmax(-1)[-1, END]
    total = -sum(np.log(each.probability) for each in found.outputs[:-1]) - float(last)
    score = pipeline.score("the red dog")
    assert total == pytest.approx(score.loss * score.tokens, abs=1e-3)


def test_answers_are_those_of_the_pipelines() -> None:
    torch.manual_seed(5)
    classifier, tagger, masked = (CASES[name]().pipeline for name in ("pair", "tagger", "masked"))
    (answer,) = classifier.attention(SOURCE, TARGET).outputs
    expected = classifier.classify([(SOURCE, TARGET)])[0]
    assert (answer.token, answer.probability) == (expected.label, pytest.approx(expected.probability, abs=1e-5))
    assert [label for label, _ in answer.runners_up] == [label for label, _ in expected.ranking[1:]]
    tags = [(each.token, pytest.approx(each.probability, abs=1e-5)) for each in tagger.attention(SOURCE).outputs]
    assert tags == [(word.tag, word.probability) for word in tagger.tag(SOURCE)]
    guesses = masked.attention("the [MASK] dog [MASK]")
    assert [guesses.sequences["source"].labels[each.place[1]] for each in guesses.outputs] == ["⟨mask⟩"] * 2
    assert masked.attention(SOURCE).outputs == ()
    images = vision("mean").pipeline
    image = np.zeros((13, 17), np.uint8)
    (shown,), expected = images.attention(image).outputs, images.classify([image])[0]
    assert (shown.token, shown.probability) == (expected.label, pytest.approx(expected.probability, abs=1e-5))


def test_an_image_has_a_grid_of_patches_at_any_resolution() -> None:
    pipeline = vision("class_token").pipeline
    image = np.arange(13 * 17, dtype=np.uint8).reshape(13, 17)
    found = pipeline.attention(image, (21, 9))
    assert found.weights("image").shape == (3, 4, 16, 16)
    assert found.labels("image")[0][:4] == ["class token", "1,1", "1,2", "1,3"]
    data = found.to_json()["image"]
    assert (data["grid"], data["extra"], data["size"], data["patch"]) == ([5, 3], 1, [21, 9], [5, 4])
    assert data["data"].startswith("data:image/png;base64,")


def test_texts_that_cannot_be_looked_into() -> None:
    torch.manual_seed(5)
    for name in ("encoder-decoder", "decoder-only", "encoder", "tagger", "masked"):
        with pytest.raises(UserError, match="blank"):
            CASES[name]().pipeline.attention(" \n" if name != "decoder-only" else "")
    with (
        pytest.warns(LongTextWarning, match="has 1998 subwords without a sentence end, and the model takes 67"),
        pytest.raises(UserError, match="the text has 1,998 tokens, and at most 1,024"),
    ):
        encoder_decoder().pipeline.attention("dog " * 999)
    with pytest.raises(UserError, match="more than the 67 tokens"):
        CASES["tagger"]().pipeline.attention("dog " * 99)
    with pytest.raises(UserError, match="the image has 1,025 tokens, and at most 1,024"):
        vision("class_token").pipeline.attention(np.zeros((13, 17), np.uint8), (160, 128))
    with pytest.raises(UserError, match="did you mean 'cross'"):
        encoder_decoder().look().weights("across")
