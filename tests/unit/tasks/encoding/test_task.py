import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heedful.models.encoder_only import EncoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.encoding.batch import EncoderBatch, encoder_loss, make_batch
from heedful.tasks.encoding.task import EncoderTask
from heedful.tasks.labelling.data import NO_LABEL
from heedful.tasks.masked_modeling.task import MaskedTexts, Masking
from heedful.tasks.task import LearningSettings
from heedful.text.special_tokens import SpecialTokens

SPECIAL = SpecialTokens(mask=3)


def model(head: str) -> EncoderOnly:
    torch.manual_seed(1)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=2))
    labels = 0 if head == "masked" else 5
    return EncoderOnly(EncoderOnlyConfig(53, 14, 29, stack=stack, head=head, num_labels=labels, special_tokens=SPECIAL))


def batch(head: str) -> EncoderBatch:
    generator = torch.Generator().manual_seed(2)
    ids, lengths = torch.randint(4, 53, (3, 11), generator=generator), torch.tensor([11, 7, 4])
    if head == "classes":
        return make_batch(ids, lengths, None, torch.tensor([4, 0, 2]))
    labels = torch.randint(0, 5, (3, 11), generator=generator)
    labels[torch.rand(3, 11, generator=generator) < 0.5] = NO_LABEL
    labels[torch.arange(11) >= lengths[:, None]] = NO_LABEL
    return make_batch(ids, lengths, None, labels)


@pytest.mark.parametrize("head", ["masked", "classes", "tags"])
def test_the_loss_is_the_usual_one_over_all_logits(head: str) -> None:
    network, texts = model(head).eval(), batch(head)
    smoothed, plain = encoder_loss(network, texts, 0.1)
    logits = network(texts.ids_BT, texts.lengths_B).flatten(0, -2)
    for loss, smoothing in ((smoothed, 0.1), (plain, 0.0)):
        expected = F.cross_entropy(
            logits, texts.labels.flatten(), ignore_index=NO_LABEL, reduction="sum", label_smoothing=smoothing
        )
        torch.testing.assert_close(loss, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("head", ["masked", "classes", "tags"])
def test_the_halves_of_a_batch_have_its_loss(head: str) -> None:
    network, texts = model(head).eval(), batch(head)
    halves = texts.halves()
    assert [len(half.ids_BT) for half in halves] == [2, 1]
    assert halves[1].ids_BT.shape[1] == 4
    assert sum(half.num_targets for half in halves) == texts.num_targets
    total = sum(float(encoder_loss(network, half, 0.0)[1]) for half in halves)
    assert total == pytest.approx(float(encoder_loss(network, texts, 0.0)[1]), abs=1e-4)
    assert halves[1].halves() == [halves[1]]


@pytest.mark.parametrize("head", ["masked", "classes", "tags"])
def test_all_parameters_have_a_gradient(head: str) -> None:
    network = model(head)
    gradients = torch.autograd.grad(encoder_loss(network, batch(head), 0.1)[0], list(network.parameters()))
    assert all(torch.isfinite(each).all() for each in gradients)


def test_a_batch_knows_its_epoch() -> None:
    random = np.random.default_rng(1)
    text = np.concatenate([[2], *([*random.integers(4, 53, size), 2] for size in random.integers(3, 25, 23))])
    texts = MaskedTexts(text, 29, Masking(SPECIAL, np.arange(4, 53), 7))
    task = EncoderTask(model("masked"), texts, texts, LearningSettings(97, 0.0, 7), str)
    for epoch in (0, 1, 5):
        batches = task.epoch_batches(epoch)
        assert sorted(np.concatenate(batches) - epoch * 23) == list(range(23))
        found = task.collate(batches[1])
        expected = texts.batch(batches[1] - epoch * 23, epoch)
        assert torch.equal(found.ids_BT, expected.ids_BT) and torch.equal(found.labels, expected.labels)
