"""Random weights of odd sizes, written by the transformers library: the imported model computes the same."""

import json
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.interop.huggingface import import_folder, read_folder
from heedful.tasks.loading import load

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()


def saved(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """A model with weights that are all random, also those that begin at zero or one, saved in a folder."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in filter(lambda each: each.requires_grad, model.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    model.eval().save_pretrained(folder)
    return model


def gpt2(folder: Path, **changes) -> torch.nn.Module:
    settings = {"vocab_size": 53, "n_positions": 29, "n_embd": 21, "n_layer": 3, "n_head": 3, "n_inner": 37}
    settings |= {"bos_token_id": 52, "eos_token_id": 52}
    return saved(transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**settings, **changes})), folder)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"tie_word_embeddings": False},
        {"scale_attn_weights": False},
        {"n_inner": None},
    ],
    ids=str,
)
@torch.inference_mode()
def test_gpt2_gives_the_same_logits(changes: dict, tmp_path: Path) -> None:
    reference = gpt2(tmp_path / "theirs", **changes)
    ours = read_folder(tmp_path / "theirs").loaded.network
    ids = torch.randint(0, 53, (3, 29), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours(ids), reference(ids).logits, atol=1e-4, rtol=0)


def marian(folder: Path, **changes) -> torch.nn.Module:
    settings = {
        "vocab_size": 59,
        "d_model": 22,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "max_position_embeddings": 31,
    }
    settings |= {
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 11,
        "encoder_ffn_dim": 19,
        "decoder_ffn_dim": 23,
    }
    settings |= {"pad_token_id": 58, "eos_token_id": 0, "decoder_start_token_id": 58, "bos_token_id": None}
    settings |= {"activation_function": "swish", "scale_embedding": True}
    model = transformers.MarianMTModel(transformers.MarianConfig(**{**settings, **changes}))
    model.final_logits_bias.copy_(torch.linspace(-1, 1, 59))
    return saved(model, folder)


@pytest.mark.parametrize("changes", [{}, {"scale_embedding": False}, {"activation_function": "relu"}], ids=str)
@torch.inference_mode()
def test_marian_gives_the_same_logits_also_with_padding(changes: dict, tmp_path: Path) -> None:
    reference = marian(tmp_path / "theirs", **changes)
    ours = read_folder(tmp_path / "theirs").loaded.network
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(1, 58, (3, 13), generator=generator),
        torch.randint(1, 58, (3, 7), generator=generator),
    )
    lengths = torch.tensor([13, 11, 5])
    mask = torch.arange(13) < lengths[:, None]
    theirs = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
    torch.testing.assert_close(ours(source, target, lengths), theirs, atol=1e-4, rtol=0)


@torch.inference_mode()
def test_marian_finds_the_same_translations(tmp_path: Path) -> None:
    from heedful.decoding import DecodingOptions, Request, decode

    reference = marian(tmp_path / "theirs")
    ours = read_folder(tmp_path / "theirs").loaded.network
    source = torch.randint(1, 58, (5, 7), generator=torch.Generator().manual_seed(2))
    requests = [Request(number, row.tolist()) for number, row in enumerate(source)]
    found = {
        each.index: each.hypotheses[0] for each in decode(ours, requests, DecodingOptions(beam=1, max_length=11), 3)
    }
    ended = torch.cat([source, torch.zeros(5, 1, dtype=torch.long)], dim=1)
    theirs = reference.generate(
        ended, num_beams=1, do_sample=False, max_new_tokens=11, bad_words_ids=[[58]], forced_eos_token_id=None
    )
    for number, row in enumerate(theirs.tolist()):
        expected = [token for token in row[1:] if token != 58]
        expected = expected[: expected.index(0)] if 0 in expected else expected
        assert found[number].tokens == expected


def test_an_imported_model_is_a_model_folder_like_any_other(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    reference = gpt2(tmp_path / "theirs", vocab_size=257, bos_token_id=256, eos_token_id=256)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {name: number for number, name in enumerate([*alphabet, "<|endoftext|>"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(tmp_path / "theirs" / "tokenizer.json"))
    result = import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert result.remarks == []
    model = load(tmp_path / "ours", engine="torch")
    ids = model.tokenizer.encode("a dog <|endoftext|>")
    assert max(ids) < 256  # text never becomes a special token
    with torch.inference_mode():
        theirs = reference(torch.tensor([ids])).logits
        torch.testing.assert_close(model.model(torch.tensor([ids])), theirs, atol=1e-4, rtol=0)
    scores = [each.score("a dog <|endoftext|>").loss for each in (model, load(tmp_path / "ours"))]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_leftover_and_missing_tensors_are_listed(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    gpt2(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "strange.weight": torch.zeros(2)}, file)
    with pytest.raises(UserError, match="no place in the model: strange"):
        read_folder(tmp_path / "theirs")
    del tensors["transformer.h.1.mlp.c_fc.bias"], tensors["transformer.ln_f.weight"]
    save_file(tensors, file)
    with pytest.raises(UserError, match=r"transformer\.ln_f\.weight is missing"):
        read_folder(tmp_path / "theirs")


def test_what_is_not_supported_is_refused_in_words(tmp_path: Path) -> None:
    gpt2(tmp_path / "theirs", scale_attn_by_inverse_layer_idx=True)
    with pytest.raises(UserError, match="only False is supported"):
        read_folder(tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({**config, "model_type": "marain"}))
    with pytest.raises(UserError, match="'marain', and heedful imports bert, gpt2, marian, vit, xlnet"):
        read_folder(tmp_path / "theirs")
    (tmp_path / "theirs" / "model.safetensors").rename(tmp_path / "theirs" / "pytorch_model.bin")
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="does not load: save it as safetensors"):
        read_folder(tmp_path / "theirs")


def test_a_marian_folder_says_that_it_takes_no_text_and_info_shows_it(tmp_path: Path, run) -> None:
    marian(tmp_path / "theirs")
    (tmp_path / "theirs" / "source.spm").write_bytes(b"")
    remark = run("import", tmp_path / "theirs", tmp_path / "ours").stderr
    assert b"SentencePiece models are not read" in remark
    assert b"`heedful info` shows the model, but no command takes text" in remark
    assert b"inspected" not in remark
    assert b"translation" in run("info", tmp_path / "ours").stdout
    for verb in (["translate"], ["inspect", "a dog", "--out", tmp_path / "page.html"]):
        result = run(verb[0], tmp_path / "ours", *verb[1:], stdin=b"a dog\n", code=2)
        assert b"has no tokenizer" in result.stderr


@pytest.mark.parametrize("kind", ["distilbert", "roberta", "deit", None])
def test_a_type_that_is_not_imported_is_told_which_are(kind: str | None, tmp_path: Path, run) -> None:
    gpt2(tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({**config, "model_type": kind}))
    message = run("import", tmp_path / "theirs", tmp_path / "ours", code=2).stderr
    assert b"heedful imports bert, gpt2, marian, vit, xlnet" in message
    assert b"did you mean" not in message


@torch.inference_mode()
def test_without_a_prompt_a_text_begins_with_the_start_token_as_theirs_does(tmp_path: Path) -> None:
    from heedful.decoding import DecodingOptions, Request, decode

    special = {"bos_token_id": 7, "eos_token_id": 52, "pad_token_id": 51}
    options = DecodingOptions(beam=1, min_length=11, max_length=11)
    limits = {"min_new_tokens": 11, "max_new_tokens": 11, "bad_words_ids": [[7], [51]], "do_sample": False}
    with_the_end = []  # what a text that begins with the end token goes on with, beside what ours does
    for seed in range(3):
        torch.manual_seed(seed)
        model = gpt2(tmp_path / "theirs", tie_word_embeddings=False, **special)
        model.transformer.wte.weight *= 5.0  # what a text begins with makes a difference
        reference = saved(model, tmp_path / "theirs")
        ours = read_folder(tmp_path / "theirs").loaded.network
        ((found,),) = [each.hypotheses for each in decode(ours, [Request(0, [])], options, 1)]
        assert reference.generate(**limits)[0].tolist() == [7, *found.tokens]
        with_the_end.append((reference.generate(torch.tensor([[52]]), **limits)[0].tolist()[1:], found.tokens))
    assert any(theirs != [*tokens] for theirs, tokens in with_the_end)


@pytest.mark.parametrize("key", ["bos_token_id", "eos_token_id", "pad_token_id"])
def test_a_token_outside_the_vocabulary_is_refused_with_file_and_key(tmp_path: Path, key: str) -> None:
    gpt2(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: 53}))
    with pytest.raises(UserError, match=rf"config.json: {key} is 53, but must be at least 0 and below 53"):
        read_folder(tmp_path / "theirs")
