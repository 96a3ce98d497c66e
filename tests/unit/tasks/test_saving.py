"""A model that was changed or made in Python, as a folder: it loads again, and is whole or not there at all."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.layers.int8_linear import with_int8_weights
from heedful.models import EncoderDecoder, EncoderDecoderConfig
from heedful.text.tokenizer import Tokenizer
from small_folders import STACK, small_models

IMAGE = np.arange(9 * 7 * 3, dtype=np.uint8).reshape(9, 7, 3)
ASK = {
    "translation": lambda model: model.translate("red dog").text,
    "language_model": lambda model: model.generate("red", heedful.GenerationOptions(max_tokens=7)),
    "masked_language_model": lambda model: model.fill("red [MASK]"),
    "classification": lambda model: model.classify("red dog"),
    "tagging": lambda model: model.tag("red dog"),
    "encoder": lambda model: model.embed("red dog").tolist(),
    "image_classifier": lambda model: model.classify([IMAGE]),
}


def changed(model) -> None:
    """One step of a plain loop: it need not be a good one."""
    torch.manual_seed(3)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape)


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("task", ASK)
def test_a_pipeline_that_was_changed(small_folders, tmp_path: Path, task: str) -> None:
    model = heedful.load(small_folders[task], engine="torch")
    changed(model.model.train())
    expected = ASK[task](model)
    heedful.save(model, tmp_path / "new" / "model")
    again = heedful.load(tmp_path / "new" / "model", engine="torch")
    assert ASK[task](again) == expected != ASK[task](heedful.load(small_folders[task], engine="torch"))
    assert heedful.load(tmp_path / "new" / "model").config == model.config
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), model.model.parameters(), strict=True))
    assert model.model.training
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["model"]


@pytest.mark.parametrize("task", ASK)
def test_a_model_by_itself(tmp_path: Path, task: str) -> None:
    network, tokenizer, config = small_models()[task]
    heedful.save(network, tmp_path / "model", tokenizer=tokenizer, labels=config.labels)
    loaded = heedful.load(tmp_path / "model")
    assert loaded.config.task == task and loaded.config.labels == config.labels
    assert ASK[task](loaded)


def test_labels_need_a_head_that_answers_with_them(tmp_path: Path) -> None:
    models = small_models()
    for task in ("encoder", "masked_language_model", "language_model"):
        network, tokenizer, _ = models[task]
        with pytest.raises(UserError, match=r"labels are ..no., .yes.., but the model has no classes or tags to name"):
            heedful.save(network, tmp_path / task, tokenizer=tokenizer, labels=["no", "yes"])
        assert not (tmp_path / task).exists()


def test_a_model_that_was_built(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["red dog"], 263)
    size = tokenizer.vocabulary_size
    model = heedful.build("translation_tiny", vocabulary_size=size)
    heedful.save(model, tmp_path / "model", tokenizer=tokenizer, source_language="en", target_language="de")
    translator = heedful.load(tmp_path / "model")
    assert (translator.config.source_language, translator.config.target_language) == ("en", "de")
    assert isinstance(translator.translate("red dog", heedful.DecodingOptions(max_length=3)).text, str)


def test_the_checksums_and_the_card(run, small_folders, tmp_path: Path) -> None:
    model = heedful.load(small_folders["translation"], engine="torch")
    heedful.save(model, tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("# model\n") and f"heedful {heedful.__version__}" in card and "Measured" not in card
    assert run("info", tmp_path / "model").stdout
    tokenizer = tmp_path / "model" / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes().replace(b"r", b"q", 1))
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        heedful.load(tmp_path / "model")


def test_weights_are_replaced_in_the_folder_of_the_same_model(small_folders, tmp_path: Path) -> None:
    model = heedful.load(small_folders["translation"], engine="torch")
    heedful.save(model, tmp_path / "model")
    before = files(tmp_path / "model")
    changed(model.model)
    heedful.save(model, tmp_path / "model")
    after = files(tmp_path / "model")
    assert {name for name in before if before[name] != after[name]} == {"model.safetensors"}
    assert ASK["translation"](heedful.load(tmp_path / "model", engine="torch")) == ASK["translation"](model)
    other = heedful.load(small_folders["language_model"], engine="torch")
    with pytest.raises(UserError, match=r"holds something else, by its config\.json: choose a folder that is new"):
        heedful.save(other, tmp_path / "model")
    assert files(tmp_path / "model") == after and [each.name for each in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_not_saved(small_folders, tmp_path: Path, value: float) -> None:
    model = heedful.load(small_folders["translation"], engine="torch")
    heedful.save(model, tmp_path / "old")
    before = files(tmp_path / "old")
    model.model.decoder_norm.weight.data[3] = value
    for name in ("old", "new"):
        with pytest.raises(UserError, match=r"^decoder_norm\.weight holds a number that is infinite or NaN"):
            heedful.save(model, tmp_path / name)
    assert files(tmp_path / "old") == before and [each.name for each in tmp_path.iterdir()] == ["old"]


def test_what_cannot_be_saved(small_folders, tmp_path: Path) -> None:
    network, tokenizer, _ = small_models()["translation"]
    classes, _, _ = small_models()["classification"]
    wrong_size = heedful.build("translation_tiny", vocabulary_size=31)
    settings = EncoderDecoderConfig(tokenizer.vocabulary_size, 256, 29, encoder=STACK, decoder=STACK)
    rounded = EncoderDecoder(settings)
    with_int8_weights(rounded)
    load, folder = heedful.load, small_folders["translation"]
    cases = [
        (load(folder, engine="core"), {}, 'load it with engine="torch"'),
        (rounded, {"tokenizer": tokenizer}, 'load it with precision="fp32"'),
        (load(folder, engine="torch", max_length=53), {}, "was made to take texts of 53 tokens"),
        (load(folder, engine="torch"), {"tokenizer": tokenizer}, "of its own: leave them out"),
        (network, {}, "give tokenizer="),
        (classes, {"tokenizer": tokenizer}, "there are 0 labels, but model.num_labels is 3"),
        (small_models()["image_classifier"][0], {"labels": ["no"]}, "no labels for its classes"),
        (wrong_size, {"tokenizer": tokenizer}, "tokens, but the model in config.json has 31"),
        (torch.nn.Linear(3, 5), {"tokenizer": tokenizer}, "a Linear cannot be saved"),
        (None, {}, "a NoneType cannot be saved"),
    ]
    for model, options, message in cases:
        with pytest.raises(UserError, match=message) as raised:
            heedful.save(model, tmp_path / "model", **options)
        assert "writing-" not in str(raised.value)  # the place where it was tried
    model = load(folder, engine="torch")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "trained" / "run").mkdir(parents=True)
    (tmp_path / "trained" / "run" / "config.json").write_text("{}")
    for place, message in (("file", "is a file: name a folder"), ("trained", "holds a training run")):
        with pytest.raises(UserError, match=message):
            heedful.save(model, tmp_path / place)
    with pytest.raises(UserError, match="must be the path of a folder"):
        heedful.save(model, None)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "trained"]


def test_half_precision_is_kept(small_folders, tmp_path: Path) -> None:
    model = heedful.load(small_folders["encoder"], engine="torch")
    model.model.to(torch.bfloat16)
    heedful.save(model, tmp_path / "model")
    header = (tmp_path / "model" / "model.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    kinds = {each["dtype"] for name, each in json.loads(header[8 : 8 + size]).items() if name != "__metadata__"}
    assert kinds == {"BF16"}
    vectors = [heedful.load(tmp_path / "model", engine=engine).embed("red dog") for engine in ("core", "torch")]
    np.testing.assert_allclose(*vectors, rtol=1e-4, atol=1e-5)
