"""The tokens of imported models are those of the transformers library: added ones, special ones, and what is around."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

import heedful
from heedful.errors import UserError
from heedful.interop.huggingface import import_folder, read_folder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FILLER = [f"[unused{number}]" for number in range(103)]  # the ids 100 to 103 are those of other tokens
WORDS = ["a", "dog", "covid", "-", "19", "sees", "the", "new", "york", "x", "[", "]", "mask", "##x"]
USUAL = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"}
ADDED = [
    "covid-19",
    AddedToken("New York", normalized=False),
    AddedToken("x", single_word=True),
    AddedToken("<l>", lstrip=True),
    AddedToken("<r>", rstrip=True, normalized=False),
]
TEXTS = ["a dog sees covid-19", "COVID-19 New York new york", "x dogx x", "a <l> dog<r> the", "[MASK] <extra> dog"]


def word_pieces(special: list[str] = SPECIAL, template: dict | None = USUAL) -> tokenizers.Tokenizer:
    vocabulary = {word: number for number, word in enumerate([*FILLER, *SPECIAL, *WORDS])}
    engine = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    engine.add_special_tokens(special)
    if template is not None:
        numbers = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
        engine.post_processor = processors.TemplateProcessing(**template, special_tokens=numbers)
    return engine


def bert_folder(folder: Path, engine: tokenizers.Tokenizer, kind: str = "BertModel", **settings) -> torch.nn.Module:
    """A BERT with random weights for a tokenizer; settings are those of tokenizer_config.json."""
    torch.manual_seed(3)
    sizes = {"hidden_size": 21, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 37}
    sizes |= {"vocab_size": engine.get_vocab_size(), "max_position_embeddings": 29, "initializer_range": 0.5}
    model = getattr(transformers, kind)(transformers.BertConfig(**sizes)).eval()
    model.save_pretrained(folder)
    engine.save(str(folder / "tokenizer.json"))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return model


@torch.inference_mode()
def same_vectors(model: torch.nn.Module, theirs: Path, ours: Path, texts: list[str]) -> None:
    """Compare the vectors of texts with those of the other library's own tokenizer and model."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(theirs)
    found = heedful.load(ours).embed(texts, pooling="class_token", normalize=False)
    right = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0].numpy() for text in texts]
    np.testing.assert_allclose(found, np.stack(right), atol=1e-4)


def test_added_tokens_are_found_as_the_other_library_finds_them(tmp_path: Path) -> None:
    engine = word_pieces()
    engine.add_special_tokens(["<extra>"])  # before the others: their ids stay what they are
    engine.add_tokens(ADDED)
    model = bert_folder(tmp_path / "theirs", engine)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = heedful.load(tmp_path / "ours").tokenizer
    for text in TEXTS[:4]:
        assert tokenizer.encode(text) == engine.encode(text, add_special_tokens=False).ids
    assert max(tokenizer.encode(TEXTS[4])) < len(FILLER + SPECIAL + WORDS)  # what looks special stays text
    same_vectors(model, tmp_path / "theirs", tmp_path / "ours", TEXTS[:4])


def test_text_beside_a_mask_is_read_as_the_other_library_reads_it(tmp_path: Path) -> None:
    bert_folder(tmp_path / "theirs", word_pieces(), "BertForMaskedLM")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    model, reference = heedful.load(tmp_path / "ours"), transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in (
        "the [MASK]19 dog",
        "[MASK]\u20ac dog",
        "dog[MASK]x a",
        "x[MASK]-19",
        "a[MASK]19[MASK] [MASK]",
        "[MASK].",
    ):
        assert model.looked_into(text, None)[0].ids == reference(text).input_ids


@pytest.mark.parametrize("beyond", [False, True])
def test_generated_added_tokens_are_text(beyond: bool, tmp_path: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = tokenizers.Tokenizer(models.BPE({name: number for number, name in enumerate(alphabet)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder, engine.post_processor = decoders.ByteLevel(), processors.ByteLevel()
    engine.add_special_tokens(["<|endoftext|>"])
    engine.add_tokens(["photosynthesis", "two words"])
    size = engine.get_vocab_size()
    if beyond:
        engine.add_special_tokens(["<pad>"])  # the model has no place for it
    sizes = {"n_positions": 29, "n_embd": 21, "n_layer": 1, "n_head": 3, "bos_token_id": 256, "eos_token_id": 256}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **sizes)).save_pretrained(tmp_path / "theirs")
    engine.save(str(tmp_path / "theirs" / "tokenizer.json"))
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = heedful.load(tmp_path / "ours").tokenizer
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    text = "photosynthesis in two words"
    assert tokenizer.encode(text) == reference(text).input_ids
    assert {257, 258} < set(tokenizer.encode(text))
    assert tokenizer.decode([257, 32, 258]) == reference.decode([257, 32, 258])
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert max(tokenizer.encode("<|endoftext|> <pad>")) < 256


def test_an_added_token_that_only_the_other_file_has_is_refused(tmp_path: Path) -> None:
    entry = {"content": "covid-19", "special": False, "lstrip": False, "rstrip": False, "single_word": False}
    bert_folder(tmp_path, word_pieces(), added_tokens_decoder={"122": entry})
    with pytest.raises(UserError, match=r"tokenizer_config\.json: added_tokens_decoder has the token 'covid-19'"):
        read_folder(tmp_path)


def test_an_added_token_beyond_the_vocabulary_of_the_model_is_refused(tmp_path: Path) -> None:
    engine = word_pieces()
    bert_folder(tmp_path, engine)
    engine.add_tokens(["covid-19"])
    engine.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"tokenizer\.json has 123 tokens, but the model in config\.json has 122"):
        read_folder(tmp_path)


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_special_tokens_are_found_in_the_vocabulary(kind: str, tmp_path: Path) -> None:
    bert_folder(tmp_path / "theirs", word_pieces(special=[]), kind)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    loaded = heedful.load(tmp_path / "ours")
    special = loaded.tokenizer.special_tokens
    assert (special.pad, special.unknown, special.start, special.end, special.mask) == (103, 104, 105, 106, 107)


def test_special_tokens_may_have_other_names(tmp_path: Path) -> None:
    names = {"cls_token": "dog", "sep_token": {"content": "sees"}, "mask_token": "york", "tokenizer_class": "X"}
    template = {"single": "dog $A sees", "pair": "dog $A sees $B:1 sees:1"}
    engine = word_pieces(template=None)
    numbers = [(name, engine.token_to_id(name)) for name in ("dog", "sees")]
    engine.post_processor = processors.TemplateProcessing(**template, special_tokens=numbers)
    bert_folder(tmp_path, engine, **names)
    special = read_folder(tmp_path).loaded.config.model.special_tokens
    assert [special.start, special.end, special.mask] == [engine.token_to_id(name) for name in ("dog", "sees", "york")]


@pytest.mark.parametrize("name", ["[CLS]", "[SEP]", "[MASK]"])
def test_a_special_token_that_the_vocabulary_lacks_is_refused_by_name(name: str, tmp_path: Path) -> None:
    bert_folder(tmp_path, word_pieces(special=[], template=None), "BertForMaskedLM")
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["vocab"]["[other]"] = content["model"]["vocab"].pop(name)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as raised:
        read_folder(tmp_path)
    assert f"tokenizer.json has no token {name}, which the model needs" in str(raised.value)


@pytest.mark.parametrize("kind", [None, "BertTokenizer", "BertTokenizerFast"])
def test_texts_are_framed_without_a_post_processor_as_the_other_library_does(kind: str | None, tmp_path: Path) -> None:
    model = bert_folder(tmp_path / "theirs", word_pieces(template=None), **({"tokenizer_class": kind} if kind else {}))
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    same_vectors(model, tmp_path / "theirs", tmp_path / "ours", ["a dog", "the dog sees", ""])


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ({"single": "$A [SEP]", "pair": USUAL["pair"]}, "A:0 [SEP]:0"),
        ({"single": "[CLS] $A", "pair": USUAL["pair"]}, "[CLS]:0 A:0"),
        ({"single": "[CLS] $A:1 [SEP]", "pair": USUAL["pair"]}, "[CLS]:0 A:1 [SEP]:0"),
        ({"single": "[SEP] $A [CLS]", "pair": USUAL["pair"]}, "[SEP]:0 A:0 [CLS]:0"),
        (None, "A:0"),
    ],
    ids=str,
)
def test_another_framing_is_refused_with_both(template: dict | None, made: str, tmp_path: Path) -> None:
    bert_folder(tmp_path, word_pieces(template=template), tokenizer_class="PreTrainedTokenizerFast")
    with pytest.raises(UserError) as raised:
        read_folder(tmp_path)
    expected = f"its post_processor makes {made} of a text A, and only [CLS]:0 A:0 [SEP]:0 is supported"
    assert str(raised.value) == f"{tmp_path / 'tokenizer.json'}: {expected}"


@pytest.mark.parametrize("pair", ["$A $B", "[CLS] $A [SEP] $B [SEP]"])
def test_another_framing_of_pairs_is_refused_where_pairs_are_read(pair: str, tmp_path: Path) -> None:
    template = {"single": USUAL["single"], "pair": pair}
    bert_folder(tmp_path / "classes", word_pieces(template=template), "BertForSequenceClassification")
    with pytest.raises(UserError, match=r"of two texts A and B, and only .CLS.:0 A:0 .SEP.:0 B:1 .SEP.:1 is supported"):
        read_folder(tmp_path / "classes")
    bert_folder(tmp_path / "encoder", word_pieces(template=template))
    read_folder(tmp_path / "encoder")


@pytest.mark.parametrize("in_sequence", [False, True])
def test_the_usual_framing_in_other_words_is_imported(in_sequence: bool, tmp_path: Path) -> None:
    engine = word_pieces(template=None)
    numbers = [(name, engine.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    template = processors.TemplateProcessing(**USUAL, special_tokens=numbers)
    sequence = processors.Sequence([processors.ByteLevel(), template])
    engine.post_processor = sequence if in_sequence else processors.BertProcessing(*numbers)
    bert_folder(tmp_path, engine, "BertForSequenceClassification")
    read_folder(tmp_path)


SMALL_GPT2 = {"vocab_size": 4, "n_positions": 29, "n_embd": 21, "n_layer": 1, "n_head": 3}
SMALL_XLNET = {"vocab_size": 4, "d_model": 12, "n_layer": 1, "n_head": 3, "d_inner": 7, "pad_token_id": 3}


def language_model(folder: Path, model: str, template: str) -> Path:
    """A GPT-2 or an XLNet with a vocabulary of two words, whose tokenizer has a template."""
    ends = {"bos_token_id": 0, "eos_token_id": 3}
    if model == "gpt2":
        made = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SMALL_GPT2, **ends))
    else:
        made = transformers.XLNetLMHeadModel(transformers.XLNetConfig(**SMALL_XLNET, **ends))
    made.save_pretrained(folder)
    engine = tokenizers.Tokenizer(models.WordLevel({"<s>": 0, "a": 1, "b": 2, "</s>": 3}, unk_token="a"))
    engine.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 0), ("</s>", 3)])
    engine.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize(
    ("model", "template", "made"),
    [
        ("gpt2", "$A", None),
        ("gpt2", "<s> $A", "<s> A"),
        ("gpt2", "$A </s>", "A </s>"),
        ("xlnet", "$A", None),
        ("xlnet", "<s> $A", "<s> A"),
        ("xlnet", "$A </s> <s>:2", None),  # the usual one, whose end is not for texts that go on
    ],
)
def test_nothing_may_stand_before_a_prompt(model: str, template: str, made: str | None, tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match=f"its post_processor makes {made} of a text A, and only A is supported")
    with refused if made else contextlib.nullcontext():
        read_folder(language_model(tmp_path, model, template))
