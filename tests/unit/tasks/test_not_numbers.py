"""A weight that is not a number is an error in words, in every search and family."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.decoding import DecodingOptions, SamplingOptions
from heedful.errors import DamagedModelError, UserError
from heedful.model_folder import LoadedModel, ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.families import FAMILIES as MODELS
from heedful.models.recurrent import Recurrent
from heedful.models.vision import Vision
from heedful.models.xlnet import XLNet
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.text.tokenizer import Tokenizer

STACK = StackConfig(num_layers=1, norm="pre", attention=AttentionConfig(num_heads=2))
SEARCHES = {
    "greedy": DecodingOptions(beam=1, max_length=5),
    "beam 2": DecodingOptions(beam=2, max_length=5),
    "beam 5": DecodingOptions(beam=5, max_length=5),
    "sampling": DecodingOptions(max_length=5, sampling=SamplingOptions()),
}
DAMAGES = [math.nan, math.inf, -math.inf]


def loaded(network, task, tokenizer, labels=()):
    return LoadedModel(network.eval(), ModelConfig("?", task, network.config, labels=labels), tokenizer)


def translator(kind):
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    size = tokenizer.vocabulary_size
    network = {
        "encoder_decoder": lambda: EncoderDecoder(EncoderDecoderConfig(size, 24, 29, encoder=STACK, decoder=STACK)),
        "recurrent": lambda: Recurrent(RecurrentConfig(size, 24, 26, 29)),
    }[kind]()
    return heedful.Translator(loaded(network, "translation", tokenizer))


def language_model(kind):
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263, whole_texts=True)
    size = tokenizer.vocabulary_size
    network = {
        "decoder_only": lambda: DecoderOnly(DecoderOnlyConfig(size, 24, 29, stack=STACK)),
        "xlnet": lambda: XLNet(
            XLNetConfig(size, 24, 29, memory_length=0, stack=StackConfig(1, attention=AttentionConfig(num_heads=2)))
        ),
    }[kind]()
    return heedful.LanguageModel(loaded(network, "language_model", tokenizer))


def encoder(kind, head, labels=()):
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263, mask=True)
    special = tokenizer.special_tokens
    config = EncoderOnlyConfig(
        tokenizer.vocabulary_size, 24, 29, stack=STACK, head=head, num_labels=len(labels), special_tokens=special
    )
    return kind(loaded(EncoderOnly(config), "?", tokenizer, labels))


def damage(pipeline, value):
    """One weight of a layer that everything goes through, and behind which nothing bounds what it gives."""
    named = dict(pipeline.model.named_parameters())
    matrices = [name for name in named if name.endswith("weight") and named[name].dim() == 2]
    # A recurrent model's output layer, the only one without a tanh behind it, is its table of embeddings.
    name = matrices[0] if isinstance(pipeline.model, Recurrent) else matrices[-1]
    with torch.no_grad():
        named[name][3, 5] = value


@pytest.mark.parametrize("value", DAMAGES)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["encoder_decoder", "recurrent"])
def test_translations(kind, search, value) -> None:
    pipeline = translator(kind)
    damage(pipeline, value)
    with pytest.raises(UserError, match="not numbers"):
        pipeline.translate(["red dog", "dog"], SEARCHES[search])
    with pytest.raises(UserError, match="not numbers"):
        pipeline.score(["red dog"], ["red dog"])


@pytest.mark.parametrize("value", DAMAGES)
@pytest.mark.parametrize("kind", ["decoder_only", "xlnet"])
def test_generated_texts(kind, value) -> None:
    pipeline = language_model(kind)
    damage(pipeline, value)
    for temperature in (0.0, 0.8):
        with pytest.raises(UserError, match="not numbers"):
            pipeline.generate("red", heedful.GenerationOptions(max_tokens=5, temperature=temperature))
    with pytest.raises(UserError, match="not numbers"):
        pipeline.score("red dog")


@pytest.mark.parametrize("value", DAMAGES)
def test_labels_tags_vectors_and_fillings(value) -> None:
    asked = [
        (
            encoder(heedful.Classifier, "classes", ("yes", "no", "maybe", "never")),
            lambda model: model.classify("red dog"),
        ),
        (encoder(heedful.Tagger, "tags", ("A", "B", "C", "D")), lambda model: model.tag("red dog")),
        (encoder(heedful.Encoder, "none"), lambda model: model.embed("red dog")),
        (encoder(heedful.MaskedLanguageModel, "masked"), lambda model: model.fill("red [MASK]")),
    ]
    for pipeline, ask in asked:
        damage(pipeline, value)
        with pytest.raises(UserError, match="not numbers"):
            ask(pipeline)


@pytest.mark.parametrize("value", DAMAGES)
def test_images(value) -> None:
    config = VisionConfig((8, 8), (4, 4), 3, 5, width=24, stack=STACK)
    labels = tuple("abcde")
    network = Vision(config).eval()
    pipeline = heedful.ImageClassifier(LoadedModel(network, ModelConfig("?", "?", config, labels=labels), None))
    damage(pipeline, value)
    with pytest.raises(UserError, match="not numbers"):
        pipeline.classify([np.zeros((8, 8, 3), np.uint8)])


FAMILIES = {
    "encoder_decoder": ("translation", EncoderDecoderConfig(263, 24, 29, encoder=STACK, decoder=STACK), ()),
    "recurrent": ("translation", RecurrentConfig(263, 24, 26, 29), ()),
    "decoder_only": ("language_model", DecoderOnlyConfig(263, 24, 29, stack=STACK), ()),
    "xlnet": (
        "language_model",
        XLNetConfig(
            263, 24, 29, memory_length=7, stack=StackConfig(1, attention=AttentionConfig(num_heads=2, bias=False))
        ),
        (),
    ),
    "encoder_only": (
        "classification",
        EncoderOnlyConfig(263, 24, 29, stack=STACK, head="classes", num_labels=2),
        ("no", "yes"),
    ),
    "vision": ("image_classifier", VisionConfig((8, 8), (4, 4), 3, 2, 24, stack=STACK), ("no", "yes")),
}


@pytest.mark.parametrize("engine", ["auto", "torch"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_weight_that_is_not_a_number_is_named_at_the_load(family: str, engine: str, tmp_path: Path) -> None:
    """Not only where it is computed with: attention gives zeros where all scores of a row are NaN."""
    task, settings, labels = FAMILIES[family]
    torch.manual_seed(1)
    network = MODELS[family].build(settings)
    tokenizer = None if family == "vision" else Tokenizer.train(["red dog"], 263)
    config = ModelConfig(family, task, settings, labels=labels)
    for name, parameter in network.named_parameters():
        right = parameter.detach().clone()
        for value in DAMAGES:
            with torch.no_grad():
                parameter.view(-1)[-1] = value
            save_model_folder(tmp_path / "model", network, tokenizer, config, "")
            with pytest.raises(UserError, match=r"model\.safetensors.*infinite or NaN") as raised:
                heedful.load(tmp_path / "model", engine=engine)
            if engine == "torch":
                assert f"model.safetensors: {name} holds" in str(raised.value)
        with torch.no_grad():
            parameter.copy_(right)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_becomes_of_scores_of_attention_that_overflow(sign: int) -> None:
    """Weights can be finite, and their products of queries and keys infinite, which no training comes to.

    A row with a score of infinity gives NaN, which is refused in the end. One whose scores are all minus infinity is
    to the kernel one that sees no key: it gives zeros, and the model answers as if it had attended to nothing.
    """
    config = VisionConfig((8, 8), (4, 4), 3, 5, width=24, stack=STACK)
    torch.manual_seed(1)
    network = Vision(config).eval()
    with torch.no_grad():
        projection = network.blocks[0].attention.query_key_value_projection
        projection.weight[:48] = 0.0
        projection.bias[:24], projection.bias[24:48] = 1e25, sign * 1e25
    pipeline = heedful.ImageClassifier(LoadedModel(network, ModelConfig("?", "?", config, labels=tuple("abcde")), None))
    image = [np.full((8, 8, 3), 200, np.uint8)]
    if sign > 0:
        with pytest.raises(UserError, match="not numbers"):
            pipeline.classify(image)
    else:
        assert sum(share for _, share in pipeline.classify(image)[0].ranking) == pytest.approx(1.0)


def damage_file(folder: Path, part: str, value: float) -> str:
    """Change a number of the first tensor with that in its name."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}
    name = next(name for name in tensors if part in name)
    tensors[name].view(-1)[3] = value
    save_file(tensors, file)
    return name


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_the_command_says_so(run, untrained_model: Path, engine: str) -> None:
    damage_file(untrained_model, "query", math.nan)
    for verb, text in (("translate", "red dog"), ("score", "red dog\tdog")):
        result = run(verb, untrained_model, text, "--engine", engine, code=2)
        assert b"infinite or NaN" in result.stderr and result.stdout == b""


@pytest.mark.parametrize("part", ["norm", "embedding", "attention.output_projection.weight"])
@pytest.mark.parametrize("value", DAMAGES)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_core_names_the_tensor(run, untrained_model: Path, precision: str, value: float, part: str) -> None:
    name = damage_file(untrained_model, part, value)
    result = run("translate", untrained_model, "--precision", precision, stdin=b"red dog\n", code=2)
    lines = result.stderr.decode().splitlines()
    assert result.stdout == b"" and len(lines) == 1
    assert lines[0].startswith("heedful: ") and "model.safetensors" in lines[0]
    expected = f"{name} holds a number that is infinite or NaN: the weights are damaged, or training diverged"
    assert lines[0].endswith(expected)


@pytest.mark.parametrize("search", SEARCHES)
def test_numbers_that_grow_beyond_all_bounds_are_the_same_to_the_core(search, tmp_path: Path) -> None:
    """Weights that are numbers, and yet give something that is none."""
    pipeline = translator("encoder_decoder")
    with torch.no_grad():
        pipeline.model.decoder_norm.weight[:] = 3e38
    config = ModelConfig("encoder_decoder", "translation", pipeline.model.config)
    save_model_folder(tmp_path / "model", pipeline.model, pipeline.tokenizer, config, "")
    for engine in ("torch", "core"):
        model = heedful.load(tmp_path / "model", engine=engine)
        with pytest.raises(DamagedModelError, match="not numbers"):
            model.translate(["red dog", "dog"], SEARCHES[search])
        with pytest.raises(DamagedModelError, match="not numbers"):
            model.score(["red dog"], ["red dog"])


def test_so_they_are_in_texts_and_vectors(tmp_path: Path) -> None:
    cases = [
        (language_model("decoder_only"), "decoder_only", "language_model", lambda model: model.generate("red")),
        (language_model("decoder_only"), "decoder_only", "language_model", lambda model: model.score("red dog")),
        (encoder(heedful.Encoder, "none"), "encoder_only", "encoder", lambda model: model.embed("red dog")),
        (
            encoder(heedful.MaskedLanguageModel, "masked"),
            "encoder_only",
            "masked_language_model",
            lambda model: model.fill("red [MASK]"),
        ),
    ]
    for number, (pipeline, family, task, ask) in enumerate(cases):
        with torch.no_grad():
            pipeline.model.norm.weight[:] = 3e38
        folder = tmp_path / str(number)
        save_model_folder(
            folder, pipeline.model, pipeline.tokenizer, ModelConfig(family, task, pipeline.model.config), ""
        )
        for engine in ("torch", "core"):
            with pytest.raises(DamagedModelError, match="not numbers"):
                ask(heedful.load(folder, engine=engine))
