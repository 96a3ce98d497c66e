"""BERT with random weights of odd sizes, written by the transformers library: the imported model computes the same."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.errors import UserError
from heedful.interop.huggingface import import_folder, read_folder
from heedful.model_folder import load_model_folder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

SIZES = {"vocab_size": 127, "hidden_size": 21, "num_hidden_layers": 3, "num_attention_heads": 3}
SIZES |= {"intermediate_size": 37, "max_position_embeddings": 29, "type_vocab_size": 2}
LABELS = {0: "red", 1: "green", 2: "blue", 3: "white", 4: "black"}


def saved(kind: str, folder: Path, **changes) -> torch.nn.Module:
    """A model with weights that are all random, also those that begin at zero or one, saved in a folder."""
    torch.manual_seed(3)
    model = getattr(transformers, kind)(transformers.BertConfig(**SIZES, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    model.eval().save_pretrained(folder)
    return model


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    ids = torch.randint(4, 127, (3, 13), generator=torch.Generator().manual_seed(1))
    lengths, firsts = torch.tensor([13, 7, 2]), torch.tensor([5, 7, 1])
    return ids, lengths, (torch.arange(13) >= firsts[:, None]).long()


def theirs(model: torch.nn.Module):
    ids, lengths, segments = inputs()
    mask = (torch.arange(13) < lengths[:, None]).long()
    return model(input_ids=ids, attention_mask=mask, token_type_ids=segments)


def real(x_BTD: torch.Tensor) -> torch.Tensor:
    return x_BTD[torch.arange(13) < inputs()[1][:, None]]


@torch.inference_mode()
def test_without_a_head(tmp_path: Path) -> None:
    reference = theirs(saved("BertModel", tmp_path))
    loaded = read_folder(tmp_path).loaded
    assert loaded.config.task == "encoder"
    network, (ids, lengths, segments) = loaded.network, inputs()
    hidden = network.hidden(ids, lengths, segments)
    torch.testing.assert_close(real(hidden), real(reference.last_hidden_state), atol=1e-4, rtol=0)
    pooled = network.pooler(network.pooled(hidden, lengths))
    torch.testing.assert_close(pooled, reference.pooler_output, atol=1e-4, rtol=0)


@pytest.mark.parametrize("eps", [1e-12, 1e-3])
@torch.inference_mode()
def test_masked_tokens(eps: float, tmp_path: Path) -> None:
    reference = theirs(saved("BertForMaskedLM", tmp_path / "theirs", layer_norm_eps=eps)).logits
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    loaded = load_model_folder(tmp_path / "ours")
    assert loaded.config.task == "masked_language_model"
    torch.testing.assert_close(real(loaded.network(*inputs())), real(reference), atol=1e-4, rtol=0)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
@torch.inference_mode()
def test_classes(activation: str, tmp_path: Path) -> None:
    reference = saved("BertForSequenceClassification", tmp_path, id2label=LABELS, hidden_act=activation)
    loaded = read_folder(tmp_path).loaded
    assert (loaded.config.task, loaded.config.labels) == ("classification", tuple(LABELS.values()))
    torch.testing.assert_close(loaded.network(*inputs()), theirs(reference).logits, atol=1e-4, rtol=0)


@torch.inference_mode()
def test_tags(tmp_path: Path) -> None:
    reference = saved("BertForTokenClassification", tmp_path, id2label=LABELS)
    loaded = read_folder(tmp_path).loaded
    assert loaded.config.task == "tagging"
    torch.testing.assert_close(real(loaded.network(*inputs())), real(theirs(reference).logits), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_names_of_old_files(tmp_path: Path) -> None:
    reference = theirs(saved("BertForMaskedLM", tmp_path)).logits
    tensors = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    renamed |= {"bert.embeddings.position_ids": torch.arange(29), "cls.seq_relationship.bias": torch.zeros(2)}
    renamed |= {"cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone()}
    save_file(renamed, tmp_path / "model.safetensors")
    torch.testing.assert_close(
        real(read_folder(tmp_path).loaded.network(*inputs())), real(reference), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("BertModel", {"is_decoder": True}, "is_decoder"),
        ("BertForMaskedLM", {"hidden_act": "relu"}, "hidden_act"),
        ("BertForMultipleChoice", {}, "BertForMultipleChoice"),
        ("BertForSequenceClassification", {"problem_type": "regression"}, "problem_type"),
    ],
)
def test_what_differs_is_refused(kind: str, changes: dict, message: str, tmp_path: Path) -> None:
    saved(kind, tmp_path, **changes)
    with pytest.raises(UserError, match=message):
        read_folder(tmp_path)


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\x1bb", "a\u2028b", "", " "])
@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_labels_that_would_break_a_line_are_refused_with_file_and_key(kind: str, name: str, tmp_path: Path) -> None:
    saved(kind, tmp_path, id2label={**LABELS, 3: name})
    with pytest.raises(UserError, match=r"config\.json: id2label: label 3 is '.*: a label must not be blank") as raised:
        read_folder(tmp_path)
    assert str(raised.value).isprintable()


def test_a_tag_with_a_space_is_refused_but_a_class_may_have_one(tmp_path: Path) -> None:
    saved("BertForSequenceClassification", tmp_path / "classes", id2label={**LABELS, 2: "light blue"})
    assert read_folder(tmp_path / "classes").loaded.config.labels[2] == "light blue"
    saved("BertForTokenClassification", tmp_path / "tags", id2label={**LABELS, 2: "light blue"})
    with pytest.raises(UserError, match="id2label: label 2 is 'light blue': tags are printed with spaces between"):
        read_folder(tmp_path / "tags")
