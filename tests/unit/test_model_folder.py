import gc
import json
import sys
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig, load_model_folder, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.recurrent import Recurrent
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.stack import StackConfig
from heedful.text.tokenizer import Tokenizer


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative_buckets"])
@pytest.mark.parametrize("shared", [True, False])
def test_save_and_load_give_the_same_bits(positions: str, shared: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))
    settings = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 29, positions, shared, shared, stack, stack)
    model = EncoderDecoder(settings).eval()
    config = ModelConfig("encoder_decoder", "translation", settings, source_language="en")
    check_folder(tmp_path, model, tokenizer, config)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("attention", ["additive", "general", "dot"])
def test_save_and_load_give_the_same_recurrent_bits(cell: str, attention: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["red dog"], 263)
    settings = RecurrentConfig(tokenizer.vocabulary_size, 11, 14, 29, cell, attention)
    check_folder(tmp_path, Recurrent(settings).eval(), tokenizer, ModelConfig("recurrent", "translation", settings))


def check_folder(tmp_path: Path, model: torch.nn.Module, tokenizer: Tokenizer, config: ModelConfig) -> None:
    """What was saved and loaded computes the same."""
    save_model_folder(tmp_path, model, tokenizer, config, model_card("name", "What.", "use", "More.", {"loss": 1.5}))
    loaded = load_model_folder(tmp_path)
    assert loaded.config == config
    assert loaded.text_tokenizer.encode("red dog") == tokenizer.encode("red dog")
    inputs = torch.randint(3, 259, (3, 7)), torch.randint(3, 259, (3, 11)), torch.tensor([7, 5, 2])
    with torch.inference_mode():
        assert torch.equal(loaded.network(*inputs), model(*inputs))
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_another_format_is_refused(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text(json.dumps({"format": 2}))
    with pytest.raises(UserError, match="reads format 1"):
        load_model_folder(tmp_path)


def logits(model: torch.nn.Module) -> torch.Tensor:
    inputs = torch.tensor([[5, 7, 11]]), torch.tensor([[3, 13]]), torch.tensor([3])
    with torch.inference_mode():
        return model(*inputs)


def mapped_kilobytes(folder: Path) -> dict[str, int]:
    """What the kernel says of this process's maps of the weights: resident, written to, and so on."""
    sizes: dict[str, int] = {}
    within = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *fields = line.split()
        if "-" in name:
            within = line.endswith(str(folder / "model.safetensors"))
        elif within and fields[-1] == "kB":
            sizes[name] = sizes.get(name, 0) + int(fields[0])
    return sizes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what lies where in memory")
def test_weights_lie_in_the_file_where_processes_share_them(untrained_model: Path) -> None:
    model = load_model_folder(untrained_model, shared=True).network
    logits(model)
    sizes = mapped_kilobytes(untrained_model)
    size = sum(parameter.nbytes for parameter in model.parameters()) // 1024
    assert sizes["Rss:"] > 0.9 * size
    assert sizes["Private_Dirty:"] == sizes["Anonymous:"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what lies where in memory")
def test_windows_gets_a_copy_for_it_replaces_no_mapped_file(
    untrained_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = load_model_folder(untrained_model, shared=True).network
    monkeypatch.setattr(sys, "platform", "win32")
    copied = load_model_folder(untrained_model, shared=True).network
    assert torch.equal(logits(copied), logits(mapped))
    del mapped
    gc.collect()
    assert mapped_kilobytes(untrained_model) == {}


def test_training_a_loaded_model_leaves_its_file_alone(untrained_model: Path) -> None:
    model, before = load_model_folder(untrained_model).network, (untrained_model / "model.safetensors").read_bytes()
    expected = logits(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    assert not torch.equal(logits(model), expected)
    assert (untrained_model / "model.safetensors").read_bytes() == before
    assert torch.equal(logits(load_model_folder(untrained_model).network), expected)


def test_a_model_can_be_saved_over_the_folder_it_lies_in(untrained_model: Path) -> None:
    loaded, reader = load_model_folder(untrained_model), load_model_folder(untrained_model).network
    expected = logits(reader)
    with torch.no_grad():
        next(loaded.network.parameters()).mul_(1.5)
    save_model_folder(untrained_model, loaded.network, loaded.tokenizer, loaded.config, "card")
    again = load_model_folder(untrained_model).network
    assert torch.equal(logits(again), logits(loaded.network))
    assert not torch.equal(logits(again), expected)
    assert torch.equal(logits(reader), expected)  # who has the old file goes on with it


def test_a_special_token_outside_the_vocabulary_is_refused_with_file_and_key(untrained_model: Path, run) -> None:
    file = untrained_model / "config.json"
    config = json.loads(file.read_text())
    config["model"]["special_tokens"]["start"] = 5000
    file.write_text(json.dumps(config))
    message = run("translate", untrained_model, stdin=b"red\n", code=2).stderr.decode()
    assert f"{file}: model.special_tokens.start is 5000, but the vocabulary has" in message
