from dataclasses import replace

import pytest
import torch

from heedful.errors import UserError
from heedful.models.encoder_only import EncoderOnly
from heedful.models.parameter_count import counted
from heedful.presets import PRESETS
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens

HEADS = {"masked": (3, 11, 53), "classes": (3, 5), "tags": (3, 11, 5), "none": (3, 11, 14)}


def model(**settings) -> EncoderOnly:
    torch.manual_seed(1)
    stack = StackConfig(num_layers=2, norm=settings.pop("norm", "pre"), attention=AttentionConfig(num_heads=7))
    labels = 5 if settings.get("head") in ("classes", "tags") else 0
    special = SpecialTokens(mask=3)
    return EncoderOnly(
        EncoderOnlyConfig(53, 14, 29, stack=stack, num_labels=labels, special_tokens=special, **settings)
    )


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(4, 53, (3, 11), generator=torch.Generator().manual_seed(2))
    return ids, torch.tensor([11, 7, 2])


@pytest.mark.parametrize("head", HEADS)
def test_the_shape_of_each_heads_answer(head: str) -> None:
    assert model(head=head).eval()(*inputs()).shape == HEADS[head]


@pytest.mark.parametrize("head", ["masked", "classes", "tags"])
@pytest.mark.parametrize("pooling", ["mean", "class_token"])
@pytest.mark.parametrize(
    ("positions", "convolution"), [("learned", 0), ("rotary", 3), ("sinusoidal", 0), ("none", 0), ("none", 5)]
)
@torch.inference_mode()
def test_padding_changes_nothing(head: str, pooling: str, positions: str, convolution: int) -> None:
    settings = {"positions": positions, "convolution": convolution, "embedding": EmbeddingConfig(segments=2)}
    network = model(head=head, pooling=pooling, **settings).eval()
    ids, lengths = inputs()
    segments = (torch.arange(11) >= torch.tensor([3, 5, 1])[:, None]).long()
    together = network(ids, lengths, segments)
    for row, length in enumerate(lengths.tolist()):
        alone = network(ids[row : row + 1, :length], lengths[row : row + 1], segments[row : row + 1, :length])[0]
        found = together[row] if head == "classes" else together[row, :length]
        torch.testing.assert_close(found, alone, atol=1e-5, rtol=0)


def test_every_token_sees_the_whole_text() -> None:
    network = model(head="tags").eval()
    ids, lengths = inputs()
    changed = ids.clone()
    changed[0, 10] = 4 if ids[0, 10] != 4 else 5
    assert not torch.equal(network(ids, lengths)[0, 0], network(changed, lengths)[0, 0])


def test_the_output_layer_of_masked_tokens_is_the_embedding() -> None:
    network = model(head="masked")
    assert network.output_layer.weight is network.embedding.table.weight
    assert "output.weight" not in dict(network.named_parameters())


def test_tokens_are_dropped_in_training_only_and_never_special_ones() -> None:
    network = model(head="classes", token_dropout=0.5)
    ids = torch.full((7, 101), 9)
    ids[:, 0], ids[:, -1] = 1, 2
    dropped = network._drop_tokens(ids)
    assert set(dropped.unique().tolist()) == {1, 2, 3, 9}
    assert (dropped[:, 0] == 1).all() and (dropped[:, -1] == 2).all()
    assert 0.4 < (dropped == 3).float().mean() < 0.6
    seen: list[torch.Tensor] = []
    network.embedding.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    for training in (True, False):
        network.train(training)(ids[:, :29], torch.full((7,), 29))
    assert (seen[0] == 3).any() and not (seen[1] == 3).any()


@pytest.mark.parametrize(
    ("preset", "head", "parameters"),
    [
        # BertModel, BertForMaskedLM and BertForSequenceClassification (2 labels) of the transformers library.
        ("bert_base", "none", 109_482_240),
        ("bert_base", "masked", 109_514_298),
        ("bert_base", "classes", 109_483_778),
        ("bert_large", "none", 335_141_888),
    ],
)
def test_the_size_of_bert(preset: str, head: str, parameters: int) -> None:
    labels = 2 if head == "classes" else 0
    config = replace(PRESETS[preset]().model, head=head, num_labels=labels)
    with torch.device("meta"):
        assert counted(EncoderOnly(config)) == parameters


def test_heads_for_labels_need_labels() -> None:
    with pytest.raises(UserError, match="num_labels is 0"):
        EncoderOnlyConfig(head="classes")
