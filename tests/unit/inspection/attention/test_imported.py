"""Imported models: the recorded weights are those of the other implementation, and of the fused model."""

from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch

from heedful.interop.huggingface import read_folder
from heedful.layers.masks import left_to_right_mask
from heedful.model_folder import LoadedModel
from heedful.models.vision import normalise
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel
from heedful.tasks.translation.pipeline import Translator
from heedful.tasks.translation.task import collate
from heedful.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

V = 263
TEXT, TARGET = "red dog", "sun"
EXACT = {"attn_implementation": "eager"}


def imported(model: torch.nn.Module, folder: Path) -> LoadedModel:
    """The model as it is imported, with a tokenizer of bytes; specials are where the model has them."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in filter(lambda each: each.requires_grad, model.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    model.eval().save_pretrained(folder)
    loaded = read_folder(folder).loaded
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = [f"<{number}>" for number in range(7)]
    engine = tokenizers.Tokenizer(
        tokenizers.models.BPE({name: number for number, name in enumerate([*names, *letters])}, [])
    )
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = getattr(loaded.config.model, "special_tokens", None)
    tokenizer = None if special is None else Tokenizer(engine, special)
    return LoadedModel(loaded.network, loaded.config, tokenizer, folder.name)


def same(ours: np.ndarray, theirs: tuple[torch.Tensor, ...]) -> None:
    np.testing.assert_allclose(ours, torch.stack(theirs)[:, 0].numpy(), atol=1e-5)


@torch.inference_mode()
def test_marian(tmp_path: Path, replay) -> None:
    sizes = {"vocab_size": V, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "max_position_embeddings": 31}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 19, "decoder_ffn_dim": 23}
    sizes |= {"pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1, "bos_token_id": None}
    with torch.inference_mode(False):
        theirs = transformers.MarianMTModel(transformers.MarianConfig(**sizes, **EXACT))
        pipeline = Translator(imported(theirs, tmp_path))
    found = pipeline.attention(TEXT, TARGET)
    source, target = (np.array(pipeline.tokenizer.encode(text)) for text in (TEXT, TARGET))
    batch = collate([source], [target], pipeline.model.special_tokens)
    expected = theirs(input_ids=batch.source_BS, decoder_input_ids=batch.target_BT, output_attentions=True)
    same(found.weights("encoder"), expected.encoder_attentions)
    same(found.weights("decoder"), expected.decoder_attentions)
    same(found.weights("cross"), expected.cross_attentions)
    inputs = (batch.source_BS, batch.target_BT, batch.source_lengths_B)
    fused = pipeline.model(*inputs)
    torch.testing.assert_close(replay(pipeline.model, found)(*inputs), fused, atol=1e-4, rtol=0)
    assert found.outputs[0].probability == pytest.approx(float(fused.softmax(-1)[0, 0, target[0]]), abs=1e-5)


@torch.inference_mode()
def test_gpt2(tmp_path: Path, replay) -> None:
    sizes = {"vocab_size": V, "n_positions": 29, "n_embd": 21, "n_layer": 3, "n_head": 3, "n_inner": 37}
    with torch.inference_mode(False):
        theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=2, eos_token_id=2, **EXACT))
        pipeline = LanguageModel(imported(theirs, tmp_path))
    found = pipeline.attention(TEXT)
    ids = torch.tensor([[2, *pipeline.tokenizer.encode(TEXT)]])
    same(found.weights("decoder"), theirs(ids, output_attentions=True).attentions)
    torch.testing.assert_close(replay(pipeline.model, found)(ids), pipeline.model(ids), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_bert(tmp_path: Path, replay) -> None:
    sizes = {"vocab_size": V, "hidden_size": 21, "num_hidden_layers": 3, "num_attention_heads": 3}
    sizes |= {"intermediate_size": 37, "max_position_embeddings": 29, "type_vocab_size": 2}
    with torch.inference_mode(False):
        theirs = transformers.BertForMaskedLM(transformers.BertConfig(**sizes, **EXACT))
        pipeline = MaskedLanguageModel(imported(theirs, tmp_path))
    found = pipeline.attention(TEXT, TARGET)
    row = pipeline.frame([(TEXT, TARGET)])[0]
    ids, lengths = torch.tensor([row.ids]), torch.tensor([len(row.ids)])
    segments = (torch.arange(len(row.ids)) >= row.first_length).long()[None]
    same(found.weights("encoder"), theirs(ids, token_type_ids=segments, output_attentions=True).attentions)
    inputs = (ids, lengths, segments)
    torch.testing.assert_close(replay(pipeline.model, found)(*inputs), pipeline.model(*inputs), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_vit(tmp_path: Path, replay) -> None:
    sizes = {"image_size": 15, "patch_size": 5, "num_channels": 3, "hidden_size": 21, "num_hidden_layers": 3}
    sizes |= {"num_attention_heads": 3, "intermediate_size": 37, "num_labels": 5}
    with torch.inference_mode(False):
        theirs = transformers.ViTForImageClassification(transformers.ViTConfig(**sizes, **EXACT))
        pipeline = ImageClassifier(imported(theirs, tmp_path))
    image = np.random.default_rng(1).integers(0, 256, (15, 15, 3), dtype=np.uint8)
    found = pipeline.attention(image)
    pixels = normalise(torch.from_numpy(image).permute(2, 0, 1)[None], pipeline.model.config.pixels)
    same(found.weights("image"), theirs(pixels, output_attentions=True).attentions)
    torch.testing.assert_close(replay(pipeline.model, found)(pixels), pipeline.model(pixels), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_xlnet(tmp_path: Path, replay) -> None:
    sizes = {"vocab_size": V, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 43}
    with torch.inference_mode(False):
        theirs = transformers.XLNetLMHeadModel(transformers.XLNetConfig(**sizes))
        pipeline = LanguageModel(imported(theirs, tmp_path))
    found = pipeline.attention(TEXT)
    ids = torch.tensor([[pipeline.model.special_tokens.end, *pipeline.tokenizer.encode(TEXT)]])
    hidden = (~left_to_right_mask(ids, None)).float().reshape(1, ids.shape[1], ids.shape[1])
    expected = theirs(ids, perm_mask=hidden, output_attentions=True).attentions
    # What the last layer would make of the contents nobody reads.
    same(found.weights("content"), expected[:-1])
    torch.testing.assert_close(replay(pipeline.model, found).hidden(ids), pipeline.model.hidden(ids), atol=1e-4, rtol=0)
