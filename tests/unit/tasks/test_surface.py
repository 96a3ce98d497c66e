"""What Python users see: one text in, one answer out; a setting is given once; what is printed is a line."""

from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.decoding import DecodingOptions
from heedful.errors import UserError


@pytest.fixture
def translator(untrained_model: Path) -> heedful.Translator:
    return heedful.load(untrained_model)


def test_one_text_gives_one_translation_and_several_a_list(translator) -> None:
    one, (listed,) = translator.translate("red dog"), translator.translate(["red dog"])
    assert isinstance(one, heedful.Translation) and one == listed
    assert translator.translate([]) == []
    assert translator.score("red", "dog") == translator.score(["red"], ["dog"])[0]
    with pytest.raises(UserError, match="one of each"):
        translator.score("red", ["dog"])


def test_the_answers_of_other_models_are_what_the_documentation_says(small_folders) -> None:
    options = heedful.GenerationOptions(max_tokens=3)
    writer, filler = (heedful.load(small_folders[task]) for task in ("language_model", "masked_language_model"))
    (text,) = writer.generate("red", options)
    assert isinstance(text, str) and writer.generate(["red"], options) == [[text]]
    (guesses,) = filler.fill("red [MASK]", top=3)
    assert len(guesses) == 3 and filler.fill(["red [MASK]"], top=3) == [[guesses]]
    tagger, encoder = (heedful.load(small_folders[task]) for task in ("tagging", "encoder"))
    assert len(tagger.tag("red dog")) == 2 and tagger.tag(["red dog"]) == [tagger.tag("red dog")]
    assert encoder.embed("red").ndim == 1 and encoder.embed(["red"]).ndim == 2
    for method, words in (
        (type(writer).generate, "For one prompt the list"),
        (type(filler).fill, "For one text a list"),
    ):
        assert words in str(method.__doc__)


@pytest.mark.parametrize("setting", [{"beam": 2}, {"nbest": 2}])
def test_a_setting_given_twice_is_an_error(translator, setting) -> None:
    (name,) = setting
    with pytest.raises(UserError, match=f"{name} is given twice"):
        translator.translate(["red"], DecodingOptions(beam=3), **setting)


def test_the_default_search_is_the_same_everywhere(translator, untrained_model: Path, run) -> None:
    expected = translator.translate(["red dog"], beam=5)
    assert translator.translate(["red dog"]) == translator.translate(["red dog"], DecodingOptions()) == expected
    printed = run("translate", untrained_model, "--scores", stdin=b"red dog\n").stdout.decode()
    assert printed == f"{expected[0].text}\t{expected[0].score:.6f}\n"
    assert b"beam is 3, but sampling" in run("translate", untrained_model, "--sample", "--beam", "3", code=2).stderr


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.3])
def test_the_length_penalty_of_a_score_is_that_of_decoding(translator, untrained_model, tmp_path, run, alpha) -> None:
    (tmp_path / "source").write_text("red dog\n")
    (tmp_path / "target").write_text("blue sea\n")
    found = translator.score("red dog", "blue sea", length_penalty=alpha)
    length = len(found.token_scores)
    assert found.score == pytest.approx(found.log_probability / ((5 + length) / 6) ** alpha)
    files = ["--source", tmp_path / "source", "--target", tmp_path / "target"]
    printed = run("score", untrained_model, *files, "--length-penalty", str(alpha)).stdout.decode()
    assert printed == f"{found.score:.6f}\n"
    with pytest.raises(UserError, match="length_penalty is -1"):
        translator.score("red dog", "blue sea", length_penalty=-1)


def test_a_string_is_one_file(tmp_path: Path) -> None:
    for name in ("t3.en", "t3.de"):
        (tmp_path / name).write_text("red dog\n" * 9)
    source, target = str(tmp_path / "t3.en"), tmp_path / "t3.de"
    data = heedful.TranslationData(source=source, target=target)
    assert data == heedful.TranslationData(source=(source,), target=(str(target),))
    data.check()
    assert heedful.TextData(text=source, valid_text=target).text == (source,)
    assert heedful.MaskedTextData(text=[source]).text == (source,)
    assert heedful.ClassifierData(data=source) == heedful.ClassifierData(data=(source,))
    assert heedful.TaggerData(valid_data=source).valid_data == (source,)


def test_the_public_names_are_listed() -> None:
    assert {"load", "train", "Translator", "TranslationData"} <= set(dir(heedful))


def test_what_is_printed_is_a_line(translator) -> None:
    maps = translator.attention("red dog", "red dog")
    found = translator.translate("red dog", nbest=2)
    for each in (translator, found, maps, *maps.maps, *maps.sequences.values(), translator.score("red", "dog")):
        assert len(repr(each).splitlines()) == 1 and len(repr(each)) < 250
        assert "array(" not in repr(each) and repr(each) == str(each)
    assert repr(translator).startswith("Translator('model': ") and "parameters" in repr(translator)
    assert repr(found).startswith(f"Translation({found.text!r}, score={found.score:.4f}")
    assert "cross: 6 layers x 8 heads" in repr(maps)


def test_encoders_answer_one_text_with_one_answer() -> None:
    from heedful.model_folder import LoadedModel, ModelConfig
    from heedful.models.encoder_only import EncoderOnly
    from heedful.settings.attention import AttentionConfig
    from heedful.settings.embedding import EmbeddingConfig
    from heedful.settings.encoder_only import EncoderOnlyConfig
    from heedful.settings.stack import StackConfig
    from heedful.text.tokenizer import Tokenizer

    tokenizer, labels = Tokenizer.train(["red dog"], 263, mask=True), ("yes", "no")

    def build(kind, head):
        stack = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=2))
        special = tokenizer.special_tokens
        config = EncoderOnlyConfig(
            tokenizer.vocabulary_size,
            24,
            29,
            stack=stack,
            head=head,
            num_labels=2,
            special_tokens=special,
            embedding=EmbeddingConfig(segments=2),
        )
        return kind(LoadedModel(EncoderOnly(config).eval(), ModelConfig("?", "?", config, labels=labels), tokenizer))

    classifier = build(heedful.Classifier, "classes")
    assert classifier.classify("red") == classifier.classify(["red"])[0]
    assert classifier.classify(("red", "dog")) == classifier.classify([("red", "dog")])[0]
    tagger = build(heedful.Tagger, "tags")
    assert tagger.tag("red dog") == tagger.tag(["red dog"])[0]
    encoder = build(heedful.Encoder, "none")
    assert encoder.embed("red").shape == (24,) and np.array_equal(encoder.embed("red"), encoder.embed(["red"])[0])
    masked = build(heedful.MaskedLanguageModel, "masked")
    assert masked.fill(["red [MASK]"]) == [masked.fill("red [MASK]")]
