"""Whatever a foreign folder holds, importing it succeeds or is a UserError, and a failure leaves nothing behind."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from heedful.errors import UserError
from heedful.interop.huggingface import import_folder, read_folder
from mutations import change, little_time_and_memory, mutated

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

SMALL = {"vocab_size": 127, "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 7}
MARIAN = {"vocab_size": 59, "d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 31}
MARIAN |= {"encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 7, "decoder_ffn_dim": 5}
MARIAN |= {"pad_token_id": 58, "eos_token_id": 0, "decoder_start_token_id": 58, "bos_token_id": None}
XLNET = {"vocab_size": 53, "d_model": 12, "n_layer": 1, "n_head": 3, "d_inner": 7}
GPT2 = {"vocab_size": 53, "n_positions": 29, "n_embd": 12, "n_layer": 2, "n_head": 3, "bos_token_id": 1}
VIT = {"image_size": 8, "patch_size": 4, "num_labels": 3, **SMALL}
VIT.pop("vocab_size")
MODELS = {
    "bert": ("BertForSequenceClassification", "BertConfig", {**SMALL, "max_position_embeddings": 29}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {**GPT2, "eos_token_id": 1}),
    "marian": ("MarianMTModel", "MarianConfig", MARIAN),
    "vit": ("ViTForImageClassification", "ViTConfig", VIT),
    "xlnet": ("XLNetLMHeadModel", "XLNetConfig", XLNET),
}
PREPROCESSING = {"do_resize": True, "size": {"height": 8, "width": 8}, "resample": 2, "do_rescale": True}
PREPROCESSING |= {"rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
PREPROCESSING |= {"do_center_crop": True, "crop_size": {"height": 8, "width": 8}}
MODULES = [
    {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of each type, with all the files that an import reads."""
    from tokenizers import Tokenizer, models

    torch.manual_seed(1)
    place = tmp_path_factory.mktemp("types")
    for kind, (model, config, sizes) in MODELS.items():
        made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
        made.save_pretrained(place / kind, max_shard_size="4KB")
        assert (place / kind / "model.safetensors.index.json").is_file()
        if kind != "vit":
            names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
            tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, "[UNK]"))
            tokenizer.add_special_tokens(names[:5])
            tokenizer.save(str(place / kind / "tokenizer.json"))
    (place / "vit" / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))
    (place / "bert" / "modules.json").write_text(json.dumps(MODULES))
    (place / "bert" / "1_Pooling").mkdir()
    (place / "bert" / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (place / "bert" / "sentence_bert_config.json").write_text('{"max_seq_length": 8, "do_lower_case": true}')
    for kind in MODELS:
        read_folder(place / kind)
    return place


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_folder_is_imported_or_refused(kind: str, folders: Path, tmp_path: Path, draw: st.DataObject) -> None:
    if not (tmp_path / "theirs").exists():
        shutil.copytree(folders / kind, tmp_path / "theirs")
    names = sorted(str(file.relative_to(folders / kind)) for file in (folders / kind).rglob("*.json"))
    names.remove("generation_config.json") if "generation_config.json" in names else None
    name = draw.draw(st.sampled_from([*names, "config.json", "config.json"]), label="file")
    right = (folders / kind / name).read_text()
    (tmp_path / "theirs" / name).write_text(json.dumps(mutated(json.loads(right), draw)))
    refusal = None
    try:
        with little_time_and_memory(3.0):
            read_folder(tmp_path / "theirs")
    except UserError as error:  # every other kind fails the test
        refusal = str(error)
    finally:
        (tmp_path / "theirs" / name).write_text(right)
    assert refusal is None or refusal.strip()


@pytest.fixture
def gpt2(folders: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folders / "gpt2", tmp_path / "theirs"))


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"n_layer": "2"}, "n_layer is '2', expected a whole number"),
        ("config.json", {"n_layer": 10**9}, "is missing"),
        ("config.json", {"n_embd": 3 * 10**9}, r"config\.json: .*larger than its weights"),
        ("config.json", {"n_head": 0}, "n_head is 0"),
        ("config.json", {"vocab_size": -1}, "vocab_size is -1"),
        ("config.json", {"eos_token_id": 53}, "eos_token_id is 53"),
        ("config.json", {"eos_token_id": 10**9}, "eos_token_id is 1000000000"),
        ("config.json", {"activation_function": ["gelu"]}, "activation_function is"),
        ("config.json", {"resid_pdrop": 1.5}, "resid_pdrop is 1.5"),
        ("config.json", {"model_type": "distilbert"}, "imports bert, gpt2, marian, vit, xlnet"),
        ("config.json", {"model_type": ["gpt2"]}, "model_type"),
        ("tokenizer.json", {"added_tokens": 7}, "added_tokens"),
        ("tokenizer.json", {"added_tokens": [{"content": 1}]}, "added_tokens"),
        ("tokenizer.json", {"model__vocab__a": 10**9}, "a token with the id 1000000000"),
        ("model.safetensors.index.json", {"weight_map": None}, "weight_map is None"),
        ("model.safetensors.index.json", {"weight_map": {"a": "../../b.safetensors"}}, "not a file of this folder"),
        ("model.safetensors.index.json", {"weight_map": {"a": "/b.safetensors"}}, "not a file of this folder"),
        ("model.safetensors.index.json", {"weight_map": {"a": 1}}, "not a file of this folder"),
        ("model.safetensors.index.json", {"weight_map": {"a": "x\x00.safetensors"}}, "not a file of this folder"),
        ("model.safetensors.index.json", {"weight_map": {"a": "gone.safetensors"}}, "gone.safetensors is missing"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named_with_its_file(file: str, changes: dict, message: str, gpt2: Path) -> None:
    change(gpt2 / file, **changes)
    with pytest.raises(UserError, match=message) as raised, little_time_and_memory():
        import_folder(gpt2, gpt2.parent / "ours")
    assert str(gpt2) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [each.name for each in gpt2.parent.iterdir()] == ["theirs"]


def test_an_index_without_its_map_is_refused(gpt2: Path) -> None:
    (gpt2 / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(UserError, match=r"model\.safetensors\.index\.json: weight_map"):
        read_folder(gpt2)


def shards(folder: Path) -> tuple[dict[str, str], list[str]]:
    """The file of each tensor, and the files in the order of their names."""
    places = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    return places, sorted(set(places.values()))


def test_each_tensor_is_read_from_the_file_that_the_index_names(gpt2: Path) -> None:
    right = read_folder(gpt2).loaded.network.state_dict()
    places, files = shards(gpt2)
    name = "transformer.h.1.ln_1.bias"
    assert len(files) > 2
    for file in files:
        if file != places[name]:
            save_file({**load_file(gpt2 / file), name: torch.full([12], 5.0)}, gpt2 / file)
    torch.testing.assert_close(read_folder(gpt2).loaded.network.state_dict(), right)


def test_a_tensor_that_is_not_where_the_index_says_is_refused_by_name(gpt2: Path) -> None:
    places, files = shards(gpt2)
    name = "transformer.ln_f.bias"
    wrong = next(file for file in files if file != places[name])
    change(gpt2 / "model.safetensors.index.json", weight_map={**places, name: wrong})
    with pytest.raises(UserError, match=rf"puts the tensor 'transformer.ln_f.bias' into {wrong}, which lacks it"):
        read_folder(gpt2)
    change(gpt2 / "model.safetensors.index.json", weight_map={key: places[key] for key in places if key != name})
    with pytest.raises(UserError, match=r"holds the tensor transformer.ln_f.bias, which .*index.json does not list"):
        read_folder(gpt2)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_numbers_are_refused_by_name(number: float, gpt2: Path) -> None:
    name = "transformer.h.1.mlp.c_fc.bias"
    place = json.loads((gpt2 / "model.safetensors.index.json").read_text())["weight_map"][name]
    tensors = load_file(gpt2 / place)
    tensors[name][3] = number
    save_file(tensors, gpt2 / place)
    with pytest.raises(UserError, match=r"transformer\.h\.1\.mlp\.c_fc\.bias holds NaN or infinity"):
        import_folder(gpt2, gpt2.parent / "ours")


@pytest.mark.parametrize("kind", MODELS)
def test_tensors_of_any_shape_and_type_are_refused(kind: str, folders: Path, tmp_path: Path) -> None:
    """Tensors in turn have an axis too few or too many, another length, no numbers at all, or integers."""
    theirs = Path(shutil.copytree(folders / kind, tmp_path / "theirs"))
    tensors = {name: each for file in sorted(theirs.glob("*.safetensors")) for name, each in load_file(file).items()}
    (theirs / "model.safetensors.index.json").unlink()
    changes = [lambda x: x.reshape(-1), lambda x: x[..., :-1], lambda x: x[:0], torch.Tensor.long, lambda x: x.sum()]
    changes += [lambda x: x[None], lambda x: x[:-1]]
    for place, (name, tensor) in enumerate(tensors.items()):
        for make in (changes[place % 7], changes[(place + 3) % 7]):
            changed = make(tensor).contiguous()
            save_file(tensors | {name: changed}, theirs / "model.safetensors")
            same = (changed.shape, changed.dtype) == (tensor.shape, tensor.dtype)
            with contextlib.nullcontext() if same else pytest.raises(UserError):
                read_folder(theirs)
    save_file(tensors, theirs / "model.safetensors")
    read_folder(theirs)
