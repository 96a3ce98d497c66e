import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.models.xlnet import XLNet
from heedful.prepared.folder import PreparedFolder
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import OrderConfig, XLNetConfig
from heedful.tasks.language_modeling.data import PreparedText
from heedful.tasks.language_modeling.permutation import PermutationTask, draw_ranks, permutation_loss
from heedful.tasks.language_modeling.task import LanguageTask, collate_windows, language_loss
from heedful.tasks.task import LearningSettings
from heedful.text.tokenizer import Tokenizer

END, LENGTH, MEMORY, VOCABULARY = 2, 11, 6, 23
STACK = StackConfig(
    2, attention=AttentionConfig(2, bias=False), feed_forward=FeedForwardConfig(19, "gelu"), norm_epsilon=1e-12
)
CONFIG = XLNetConfig(VOCABULARY, 14, LENGTH + MEMORY, MEMORY, stack=STACK)


def text(documents: bool = False) -> np.ndarray:
    ids = np.random.default_rng(1).integers(3, VOCABULARY, 200).astype(np.uint16)
    ids[0] = END
    if documents:
        ids[37::41] = END
    return ids


def build(documents: bool = False, **changes) -> PermutationTask:
    torch.manual_seed(1)
    model = XLNet(replace(CONFIG, **changes)).eval()
    ids = text(documents)
    settings = LearningSettings(5 * LENGTH, 0.0, seed=3)
    tokenizer = Tokenizer.of_characters(["abcdefghijklmnopqrstuvwxyz"])
    data = PreparedText(ids, ids[:50], tokenizer, PreparedFolder(Path(), "", {"valid_bytes": 50}, Path("report")))
    return PermutationTask(model, LanguageTask(model, data, 14, settings))


def test_an_order_begins_with_what_is_given_and_ends_with_what_nothing_sees() -> None:
    orders = [draw_ranks(LENGTH, 0.5, [1, 2, start]) for start in range(200)]
    for ranks in orders:
        assert sorted(ranks) == list(range(LENGTH + 1))
        assert (ranks[0], ranks[-1]) == (0, LENGTH)
    plain = sum(ranks.tolist() == list(range(LENGTH + 1)) for ranks in orders)
    assert 70 <= plain <= 130
    firsts = {int(ranks.argsort()[1]) for ranks in orders}
    assert firsts == set(range(1, LENGTH))
    assert draw_ranks(LENGTH, 0.5, [1, 2, 3]).tolist() == orders[3].tolist()
    assert (draw_ranks(LENGTH, 1.0, [1]) == np.arange(LENGTH + 1)).all()


def test_segments_cover_the_text_in_other_orders_each_epoch() -> None:
    task = build(orders=OrderConfig(1.0, 0.0))
    seen, orders = [], []
    for epoch in range(2):
        for indices in task.epoch_batches(epoch):
            batch = task.collate(indices)
            orders += [tuple(row.tolist()) for row in batch.ranks_BX]
            seen += (indices % len(task.train)).tolist()
    assert len(set(orders)) == len(orders)
    half = sorted(seen[: len(seen) // 2])
    assert all(later - earlier == LENGTH for earlier, later in itertools.pairwise(half))


@pytest.mark.parametrize("documents", [False, True])
def test_a_batch_holds_the_text_as_it_is(documents: bool) -> None:
    task = build(documents, orders=OrderConfig(0.4, 0.5))
    indices = np.array([2, 60, 200 + 31])  # the last one is of the second epoch
    batch = task.collate(indices)
    ids = text(documents).astype(np.int64)
    for row, start in enumerate([2, 60, 31]):
        assert batch.ids_BT[row].tolist() == ids[start : start + LENGTH].tolist()
        assert batch.labels_BP[row].tolist() == ids[start + batch.places_BP[row].numpy()].tolist()
        assert batch.memory_BM[row, -2:].tolist() == ids[start - 2 : start].tolist()
        # The predicted places are the last of the order.
        ranks = batch.ranks_BX[row]
        assert sorted(ranks[batch.places_BP[row]].tolist()) == list(range(LENGTH - 3, LENGTH + 1))
    assert batch.labels_BP.shape == (3, 4)
    assert (batch.documents_BS[0, : MEMORY - 2] == -1).all()  # before the text
    assert (batch.documents_BS[0, MEMORY - 2 :] >= 0).all()
    assert [len(half.ids_BT) for half in batch.halves()] == [2, 1]


@pytest.mark.parametrize("documents", [False, True])
@torch.inference_mode()
def test_the_plain_order_gives_the_loss_of_a_language_model_with_a_longer_context(documents: bool) -> None:
    task = build(documents, orders=OrderConfig(1.0, 1.0))
    starts = np.array([60, 31, 117])
    batch = task.collate(starts)
    total = permutation_loss(task.model, batch, 0.0)[1]
    torch.testing.assert_close(
        task.loss(task.model, batch)[1], total, atol=1e-3, rtol=1e-5
    )  # with half of the distances
    # Segment and memory in one piece, of which only the segment is scored.
    whole = collate_windows(task.train, starts - MEMORY, MEMORY + LENGTH, END)
    logits = task.model.output(task.model.hidden(whole.ids_BT, whole.documents_BT))[:, MEMORY:]
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), whole.labels_BT[:, MEMORY:].flatten(), reduction="sum"
    )
    torch.testing.assert_close(total, expected, atol=1e-3, rtol=1e-5)


@torch.inference_mode()
def test_the_language_loss_uses_the_bias_of_the_output() -> None:
    task = build()
    torch.nn.init.normal_(task.model.output.bias)
    batch = collate_windows(task.train, np.array([3, 50]), LENGTH, END)
    expected = torch.nn.functional.cross_entropy(
        task.model.output(task.model.hidden(batch.ids_BT)).flatten(0, 1), batch.labels_BT.flatten(), reduction="sum"
    )
    torch.testing.assert_close(language_loss(task.model, batch, 0.0)[1], expected, atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("predicted", [1.0, 0.4])
@torch.inference_mode()
def test_no_target_can_be_read_off(predicted: float) -> None:
    """Another token at a predicted place changes no prediction of it, nor of what comes before it in the order."""
    task = build(orders=OrderConfig(predicted, 0.0))
    batch = task.collate(np.array([60]))
    content, query = batch.masks()
    memories = task.model.remember(batch.memory_BM)
    before = task.model.predict(batch.ids_BT, content, query, memories)
    for place in range(1, LENGTH):
        ids = batch.ids_BT.clone()
        ids[0, place] = 3 + (ids[0, place] - 2) % (VOCABULARY - 3)
        after = task.model.predict(ids, content, query, memories)
        ranks = batch.ranks_BX[0]
        same = (before == after).all(-1)[0]
        assert same.tolist() == (ranks[1:] <= ranks[place]).tolist()


def test_a_causal_model_learns_the_plain_order_alone() -> None:
    task = build(causal=True, orders=OrderConfig(1.0, 0.0))
    batch = task.collate(task.epoch_batches(0)[0])
    assert (batch.ranks_BX == torch.arange(LENGTH + 1)).all()


@pytest.mark.parametrize(
    "changes", [{}, {"segments": True}, {"causal": True}, {"memory_length": 0}, {"orders": OrderConfig(0.4, 0.5)}]
)
def test_every_parameter_has_a_gradient_and_parts_sum_up(changes: dict) -> None:
    task = build(**changes, stack=replace(STACK, dropout=0.0))
    task.model.train()
    batch = task.collate(task.epoch_batches(0)[0])
    parameters = list(task.model.parameters())
    whole = torch.autograd.grad(task.loss(task.model, batch)[0], parameters)
    parts = [torch.autograd.grad(task.loss(task.model, half)[0], parameters) for half in batch.halves()]
    for at_once, first, second in zip(whole, *parts, strict=True):
        torch.testing.assert_close(at_once, first + second, atol=1e-4, rtol=1e-4)
