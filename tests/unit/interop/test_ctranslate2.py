"""Random weights of odd sizes: CTranslate2 gives the exported model's texts the same log-probabilities, and finds the
same ones."""

import json
import sys
from pathlib import Path

import pytest
import torch

from heedful.cli.export import export
from heedful.errors import UserError
from heedful.interop import ctranslate2_export
from heedful.interop.ctranslate2_export import SENTENCES, export_folder
from heedful.model_folder import ModelConfig, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.text.tokenizer import SPECIAL_TOKENS, Tokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

CHARACTERS = "abcdefghijklmnopqrstuvwxyzäöüß ABCDEFGHIJKLMNOPQRSTU.,!"


def stack(layers: int, heads: int, attention: dict | None = None, feed_forward: dict | None = None, **changes):
    return StackConfig(
        layers,
        attention=AttentionConfig(num_heads=heads, **(attention or {})),
        feed_forward=FeedForwardConfig(**{"inner_width": 37, **(feed_forward or {})}),
        **changes,
    )


def saved(folder: Path, both: dict | None = None, **changes) -> Path:
    """A model folder with weights that are all random, also those that begin at zero or one."""
    tokenizer = Tokenizer.of_characters([CHARACTERS])
    settings = {
        "width": 22,
        "max_length": 31,
        "encoder": stack(2, 11, **(both or {})),
        "decoder": stack(3, 2, **(both or {})),
    }
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, **{**settings, **changes})
    torch.manual_seed(5)
    model = EncoderDecoder(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
        # A model that has learned anything writes no special tokens inside a text, and does not end it at once.
        last = (
            model.decoder_norm
            if hasattr(model.decoder_norm, "weight")
            else model.decoder[-1].feed_forward_residual.norm
        )
        if hasattr(last, "bias"):
            last.bias.add_(1.0)
        model.output.weight[:3] = torch.tensor([-2.0, -2.0, -0.1])[:, None]
    card = model_card("random", "Random weights.", "", config.summary(), {})
    save_model_folder(folder, model, tokenizer, ModelConfig("encoder_decoder", "translation", config), card)
    return folder


KINDS = {
    "post-norm": {},
    "pre-norm": {"both": {"norm": "pre"}},
    "learned": {"positions": "learned"},
    "halves": {"positions": "sinusoid_halves"},
    "none": {"positions": "none"},
    "gelu": {"both": {"feed_forward": {"activation": "gelu"}}},
    "gelu_tanh": {"both": {"feed_forward": {"activation": "gelu_tanh", "bias": False}}},
    "silu": {"both": {"feed_forward": {"activation": "silu"}}},
    "swiglu": {"both": {"feed_forward": {"activation": "swiglu"}}},
    "untied": {"tied_output": False},
    "separate": {"shared_embeddings": False, "output_bias": True},
    "unscaled": {"embedding": EmbeddingConfig(scaled=False), "both": {"attention": {"scaled": False, "bias": False}}},
    "values as wide as keys": {name: stack(2, 2, {"value_width": 11}) for name in ("encoder", "decoder")},
    "wide heads": {"both": {"attention": {"key_width": 6}}},
    "rms": {"both": {"norm": "pre", "norm_kind": "rms", "norm_epsilon": 1e-3}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_score_and_translate_alike(kind: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "ours", **KINDS[kind])
    found = export_folder(folder, tmp_path / "theirs")
    assert max(found.differences) < 1e-4
    assert (found.same_greedy, found.same_beam) == (SENTENCES, SENTENCES)
    assert (tmp_path / "theirs" / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    names = json.loads((tmp_path / "theirs" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert tuple(names[:3]) == SPECIAL_TOKENS
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ours", "theirs"]


def test_int8_is_close_to_it(tmp_path: Path) -> None:
    folder = saved(tmp_path / "ours")
    found = export_folder(folder, tmp_path / "theirs", "int8")
    assert max(found.differences) > 1e-4
    assert ctranslate2.Translator(str(tmp_path / "theirs")).compute_type.startswith("int8")


REFUSED = {
    "additive scores": {"both": {"attention": {"scoring": "additive"}}},
    "values of another width": {"both": {"attention": {"key_width": 6, "value_width": 5}}},
    "values of another": {"encoder": stack(2, 11, {"value_width": 3})},
    "share keys and values": {"encoder": stack(2, 4, {"num_key_value_heads": 2, "key_width": 6})},
    "only a window": {"both": {"local_window": 3}},
    "rotary positions": {"positions": "rotary", "both": {"attention": {"key_width": 6}}},
    "alibi positions": {"positions": "alibi"},
    "epsilon of the decoder's own": {"decoder": stack(3, 2, norm_epsilon=1e-3)},
    "normalised embeddings": {"embedding": EmbeddingConfig(norm=True)},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_ctranslate2_has_not_is_refused_by_name(what: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=what):
        export_folder(saved(tmp_path / "ours", **REFUSED[what]), tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize("spoilt", ["weight", "bias"])
def test_a_wrong_export_is_removed(spoilt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "ours")
    right = ctranslate2_export.convert

    def wrong(loaded):
        spec = right(loaded)
        layer = spec.decoder.layer[1].attention.linear[1]
        setattr(layer, spoilt, getattr(layer, spoilt) * 1.1 + 0.01)
        return spec

    monkeypatch.setattr(ctranslate2_export, "convert", wrong)
    with pytest.raises(UserError, match="went wrong, and was removed"):
        export_folder(folder, tmp_path / "theirs")
    assert [each.name for each in tmp_path.iterdir()] == ["ours"]


def test_the_command_tells_how_the_two_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(saved(tmp_path / "ours")), "--to", "ctranslate2", str(tmp_path / "theirs")]
    export.main(arguments, standalone_mode=False)
    assert f"of {SENTENCES} made-up sentences, {SENTENCES} greedy and {SENTENCES} beam-5" in capsys.readouterr().err


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = saved(tmp_path / "ours")
    with pytest.raises(UserError, match="already exists"):
        export_folder(folder, folder)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    folder = saved(tmp_path / "ours")
    with pytest.raises(UserError, match=r"cannot write .*config\.json.theirs: File exists"):
        export_folder(folder, folder / "config.json" / "theirs")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r"pip install 'heedful\[ctranslate2\]'"):
        export_folder(saved(tmp_path / "ours"), tmp_path / "theirs")
