"""Folders of sentence encoders: how they make vectors is read from them, kept, and followed."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.interop.huggingface import import_folder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "red", "dog", "cat", "sees", "a", "Red"]
TEXTS = ["the red dog", "a cat", "the cat sees the red dog a cat sees the dog", "Red dog"]
MODULES = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]


def write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def sentence_folder(folder: Path, *, modules=MODULES, pooling: dict | None = None, settings: dict | None = None):
    """A BERT with random weights and a vocabulary of words, with the files of the sentence-transformers library."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(5)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 21, "num_hidden_layers": 2, "num_attention_heads": 3}
    sizes |= {"intermediate_size": 37, "max_position_embeddings": 29, "pad_token_id": 0}
    model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(WORDS[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    kinds = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(modules)
    ]
    write(folder / "modules.json", kinds)
    mean = {"word_embedding_dimension": 21, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    write(folder / "1_Pooling" / "config.json", mean if pooling is None else pooling)
    write(folder / "sentence_bert_config.json", settings or {"max_seq_length": 8, "do_lower_case": False})
    return model


@torch.inference_mode()
def expected(model, texts: list[str], longest: int, *, mean: bool, unit: bool, lower: bool = False) -> np.ndarray:
    """What the sentence-transformers library computes: truncated, pooled, normalised."""
    rows = []
    for text in texts:
        ids = [WORDS.index(word) if word in WORDS else 1 for word in (text.lower() if lower else text).split()]
        ids = [2, *ids[: longest - 2], 3]
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        row = hidden.mean(0) if mean else hidden[0]
        rows.append((row / row.norm() if unit else row).numpy())
    return np.stack(rows)


@pytest.mark.filterwarnings("ignore:text 3 is longer than")
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("mean", [True, False])
def test_vectors_are_made_as_the_folder_says(mean: bool, unit: bool, lower: bool, tmp_path: Path) -> None:
    pooling = {"pooling_mode_cls_token": not mean, "pooling_mode_mean_tokens": mean}
    modules = MODULES if unit else MODULES[:2]
    settings = {"max_seq_length": 8, "do_lower_case": lower}
    model = sentence_folder(tmp_path / "theirs", modules=modules, pooling=pooling, settings=settings)
    assert import_folder(tmp_path / "theirs", tmp_path / "ours").remarks == []
    ours = heedful.load(tmp_path / "ours").embed(TEXTS)
    right = expected(model, TEXTS, 8, mean=mean, unit=unit, lower=lower)
    np.testing.assert_allclose(ours, right, atol=1e-5)


def test_the_command_follows_them_and_says_what_it_did_not_read(tmp_path: Path, run) -> None:
    model = sentence_folder(tmp_path / "theirs", modules=MODULES[:2])
    run("import", tmp_path / "theirs", tmp_path / "ours")
    result = run("embed", tmp_path / "ours", stdin="\n".join(TEXTS).encode())
    assert b"line 3 is longer than the 8 tokens that the model takes: its end was not read" in result.stderr
    found = np.array([json.loads(line) for line in result.stdout.splitlines()])
    np.testing.assert_allclose(found, expected(model, TEXTS, 8, mean=True, unit=False), atol=1e-5)
    assert b"mean of all tokens" in run("info", tmp_path / "ours").stdout


def test_a_folder_without_modules_says_what_is_assumed(tmp_path: Path, run) -> None:
    model = sentence_folder(tmp_path / "theirs")
    (tmp_path / "theirs" / "modules.json").unlink()
    assert b"will take the class token" in run("import", tmp_path / "theirs", tmp_path / "ours").stderr
    right = expected(model, TEXTS[:2], 29, mean=False, unit=True)
    np.testing.assert_allclose(heedful.load(tmp_path / "ours").embed(TEXTS[:2]), right, atol=1e-5)


def test_a_newer_file_names_its_pooling(tmp_path: Path) -> None:
    model = sentence_folder(tmp_path / "theirs", pooling={"embedding_dimension": 21, "pooling_mode": "mean"})
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    right = expected(model, TEXTS[:2], 8, mean=True, unit=True)
    np.testing.assert_allclose(heedful.load(tmp_path / "ours").embed(TEXTS[:2]), right, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"modules": [*MODULES[:2], ("Dense", "2_Dense"), MODULES[2]]}, "'Dense' is not supported"),
        ({"modules": [*MODULES[:1], MODULES[2]]}, "Transformer, Normalize"),
        ({"modules": [("Transformer", "0_BERT"), *MODULES[1:]]}, "0_BERT"),
        ({"modules": [MODULES[0], ("Pooling", "../1_Pooling")]}, "not that of a folder beside it"),
        ({"pooling": {"pooling_mode_weightedmean_tokens": True}}, "pooling_mode_weightedmean_tokens is not supported"),
        ({"pooling": {"pooling_mode_max_tokens": True}}, "pooling_mode_max_tokens is not supported"),
        ({"pooling": {"pooling_mode": "lasttoken"}}, "lasttoken is not supported"),
        ({"pooling": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}}, "pooling_mode_cls_token"),
        ({"pooling": {}}, "no pooling is not supported"),
        ({"pooling": {"pooling_mode_mean_tokens": "yes"}}, "expected true or false"),
        ({"settings": {"max_seq_length": 500}}, "max_seq_length is 500, but the model takes 29"),
        ({"settings": {"max_seq_length": "8"}}, "expected a whole number"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_refused_by_name(changes: dict, message: str, tmp_path: Path) -> None:
    sentence_folder(tmp_path / "theirs", **changes)
    with pytest.raises(UserError, match=message):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_prompts_are_refused(tmp_path: Path) -> None:
    sentence_folder(tmp_path / "theirs")
    write(tmp_path / "theirs" / "config_sentence_transformers.json", {"default_prompt_name": "query"})
    with pytest.raises(UserError, match="default_prompt_name is 'query'"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")


def test_the_server_follows_them(tmp_path: Path) -> None:
    from heedful.server.front.text_schemas import EmbedRequest
    from heedful.tasks.direct_verb import direct_verbs

    model = sentence_folder(tmp_path / "theirs", modules=MODULES[:2])
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    options = {"normalize": EmbedRequest(text="a cat").normalize}
    answers = direct_verbs()["embed"].compute(heedful.load(tmp_path / "ours"), TEXTS[:2], options)
    found = np.stack([np.frombuffer(data, "<f4") for data, _ in answers])
    np.testing.assert_allclose(found, expected(model, TEXTS[:2], 8, mean=True, unit=False), atol=1e-5)
