"""Whatever a model folder's files hold, loading it succeeds or is a UserError, soon and in little memory."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import heedful
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.text.tokenizer import Tokenizer
from mutations import change, little_time_and_memory, mutated, unseal

STACK = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=2))
UNBIASED = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=2, bias=False))
SETTINGS = {
    "encoder_decoder": ("translation", EncoderDecoderConfig(263, 12, 29, encoder=STACK, decoder=STACK)),
    "recurrent": ("translation", RecurrentConfig(263, 12, 14, 29)),
    "decoder_only": ("language_model", DecoderOnlyConfig(263, 12, 29, "rotary", stack=STACK)),
    "xlnet": ("language_model", XLNetConfig(263, 12, 29, 7, stack=UNBIASED)),
    "encoder_only": ("classification", EncoderOnlyConfig(263, 12, 29, stack=STACK, head="classes", num_labels=2)),
    "vision": ("image_classifier", VisionConfig((8, 8), (4, 4), 3, 2, 12, stack=STACK)),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of each family."""
    torch.manual_seed(1)
    tokenizer, place = Tokenizer.train(["red dog"], 263), tmp_path_factory.mktemp("families")
    for family, (task, model) in SETTINGS.items():
        labels = ("no", "yes") if family in ("encoder_only", "vision") else ()
        config = ModelConfig(family, task, model, labels=labels)
        network = FAMILIES[family].build(model)
        save_model_folder(place / family, network, None if family == "vision" else tokenizer, config, "card")
        heedful.load(unseal(place / family))
    return place


@pytest.mark.parametrize("family", SETTINGS)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_config_loads_or_is_refused(family: str, folders: Path, tmp_path: Path, draw: st.DataObject) -> None:
    config = mutated(json.loads((folders / family / "config.json").read_text()), draw)
    folder = tmp_path / "model"
    if not folder.exists():
        shutil.copytree(folders / family, folder)
    (folder / "config.json").write_text(json.dumps(config))
    refusal = None
    try:
        with little_time_and_memory(3.0):
            heedful.load(folder)
    except UserError as error:  # every other kind fails the test
        refusal = str(error)
    assert refusal is None or refusal.strip()


@pytest.fixture
def folder(folders: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folders / "encoder_decoder", tmp_path / "model"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__vocabulary_size": -5}, "vocabulary_size is -5"),
        ({"model__vocabulary_size": None}, "vocabulary_size' is None, expected a whole number"),
        ({"model__vocabulary_size": 10**9}, "larger than its weights"),
        ({"model__encoder__num_layers": 10**9}, r"model\.encoder\.num_layers is 1,000,000,000"),
        ({"model__max_length": 10**9}, "max_length is 1000000000, too many positions"),
        ({"model__max_length": 10**30}, "config.json"),
        ({"model__width": 10**9}, "larger than its weights|too many positions"),
        ({"model__encoder__feed_forward__inner_width": 10**17}, "larger than its weights"),
        ({"model__encoder__dropout": 10**400}, "dropout"),
        ({"family": ["encoder_decoder"]}, "family is"),
        ({"family": "vision"}, "config.json"),
        ({"task": "language_model"}, "needs decoder_only or xlnet"),
        ({"task": {}}, "task"),
        ({"model": []}, "expected a table of settings"),
        ({"labels": "abc"}, "expected a list"),
        ({"labels": ["no", "y\tes"]}, r"'labels': label 1 is 'y\\tes'"),
        ({"format": True}, "format"),
        ({"format": [1]}, "format"),
    ],
    ids=str,
)
def test_a_wrong_config_is_refused_soon(folder: Path, changes: dict, message: str) -> None:
    change(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message) as raised, little_time_and_memory():
        heedful.load(folder)
    assert "config.json" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[]", "does not hold a JSON object"),
        ('{"format": 1, "format": 1}', "the key 'format' is there twice"),
        ('{"format": NaN}', "NaN is not a finite number"),
        ('{"format": 1e999}', "1e999 is not a finite number"),
        ('{"format": ' + "9" * 5000 + "}", "not valid JSON"),
        ("\xff", "not valid JSON"),
        ("", "not valid JSON"),
    ],
    ids=lambda text: text[:20],
)
def test_a_config_that_is_not_proper_json_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=message), little_time_and_memory():
        heedful.load(folder)


PADDING = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
PADDING |= {"pad_type_id": 0, "pad_token": "a"}
TRUNCATION = {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__vocab__a": 10**9}, "a token with the id 1000000000"),
        ({"model__vocab__a": 263}, "a token with the id 263"),
        ({"model__vocab__a": -1}, "not a tokenizer"),
        ({"padding": PADDING}, "its padding must be null"),
        ({"truncation": TRUNCATION}, "its truncation must be null"),
        ({"model": {"type": "WordLevel"}}, "not a tokenizer"),
        ({"model": None}, "not a tokenizer"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "not a tokenizer: Precompiled"),
    ],
    ids=str,
)
def test_a_wrong_tokenizer_is_refused_soon(folder: Path, changes: dict, message: str) -> None:
    change(folder / "tokenizer.json", **changes)
    with pytest.raises(UserError, match=message) as raised, little_time_and_memory():
        heedful.load(folder)
    assert "tokenizer.json" in str(raised.value)


def test_a_tokenizer_that_fails_at_a_text_is_no_crash(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"] = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "missing"}
    content["normalizer"] = content["pre_tokenizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(content))
    model = heedful.load(folder)
    with pytest.raises(UserError, match="the tokenizer cannot encode this text"):
        model.translate(["red dog"])


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 100, (10**18).to_bytes(8, "little"), b"\x02" + b"\x00" * 7 + b"{}"], ids=str
)
def test_wrong_weights_are_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors"), little_time_and_memory():
        heedful.load(folder)


@pytest.mark.parametrize(
    "arrays",
    [
        {"frequent": torch.zeros(0, dtype=torch.long)},
        {"frequent": torch.tensor([-1])},
        {"likely": torch.zeros(263, 2)},
        {"strengths": torch.zeros(263)},
    ],
    ids=str,
)
def test_a_wrong_shortlist_is_refused(folder: Path, arrays: dict) -> None:
    from safetensors.torch import save_file

    right = {"frequent": torch.tensor([2]), "likely": torch.zeros(263, 2, dtype=torch.long)}
    right |= {"strengths": torch.zeros(263, 2)}
    save_file(right, folder / "shortlist.safetensors")
    heedful.load(folder, shortlist=True)
    save_file(right | arrays, folder / "shortlist.safetensors")
    with pytest.raises(UserError, match=r"shortlist\.safetensors is"):
        heedful.load(folder, shortlist=True)
