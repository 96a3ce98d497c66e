from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.config import from_dict
from heedful.models.decoder_only import DecoderOnly
from heedful.prepared.folder import PreparedFolder
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.tasks.language_modeling.data import PreparedText
from heedful.tasks.language_modeling.task import LanguageTask, collate_windows, language_loss, text_loss
from heedful.tasks.task import LearningSettings
from heedful.text.tokenizer import Tokenizer

END = 2


def small_model(length: int = 13) -> DecoderOnly:
    torch.manual_seed(1)
    stack = {"num_layers": 1, "norm": "pre", "attention": {"num_heads": 3}}
    config = {"vocabulary_size": 19, "width": 12, "max_length": length, "stack": stack}
    return DecoderOnly(from_dict(DecoderOnlyConfig, config)).eval()


def text(length: int, ends: tuple[int, ...] = ()) -> np.ndarray:
    ids = np.random.default_rng(1).integers(3, 19, length)
    ids[[0, *ends]] = END
    return ids


def task(ids: np.ndarray, length: int = 13) -> LanguageTask:
    tokenizer = Tokenizer.of_characters(["abcdefghijklmno"])
    data = PreparedText(ids, ids, tokenizer, PreparedFolder(Path(), "", {"valid_bytes": len(ids)}, Path("report")))
    return LanguageTask(small_model(length), data, 12, LearningSettings(40, 0.0, 7))


def test_windows_are_cut_where_they_are_said_to_begin() -> None:
    ids = text(29)
    batch = collate_windows(ids, np.array([3, 11]), 5, END)
    assert batch.ids_BT.tolist() == [ids[3:8].tolist(), ids[11:16].tolist()]
    assert batch.labels_BT.tolist() == [ids[4:9].tolist(), ids[12:17].tolist()]
    assert batch.documents_BT is None


def test_a_document_begins_with_the_end_of_the_one_before() -> None:
    batch = collate_windows(text(29, ends=(4, 9)), np.array([1]), 11, END)
    assert batch.documents_BT is not None
    assert batch.documents_BT.tolist() == [[0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]]


def test_every_token_is_predicted_once_an_epoch_but_for_the_ends() -> None:
    ids = text(211)
    found = task(ids)
    for epoch in range(5):
        batches = found.epoch_batches(epoch)
        starts = np.sort(np.concatenate(batches))
        assert (np.diff(starts) == 13).all()
        assert 0 <= starts[0] < 13 and len(ids) - 13 <= starts[-1] + 13 < len(ids)
        assert all(len(batch) <= 3 for batch in batches)
    assert not np.array_equal(np.concatenate(found.epoch_batches(0)), np.concatenate(found.epoch_batches(1)))
    assert all(map(np.array_equal, found.epoch_batches(3), task(ids).epoch_batches(3)))


def test_a_text_shorter_than_the_context_is_one_window() -> None:
    found = task(text(7))
    assert found.length == 6
    assert [batch.tolist() for batch in found.epoch_batches(0)] == [[0]]


@torch.inference_mode()
def test_the_loss_of_a_text_is_that_of_its_windows_by_themselves() -> None:
    model, ids = small_model(), text(47, ends=(5, 20))
    total, count = text_loss(model, ids, 30)
    assert count == 46
    expected = 0.0
    for start in range(0, 46, 13):
        row = torch.from_numpy(ids[start : start + 14])
        documents = (row[:-1] == END).cumsum(0)[None]
        scores = model(row[None, :-1], documents)[0].log_softmax(-1)
        expected -= float(scores.gather(1, row[1:, None]).sum())
    assert abs(total - expected) < 1e-3


def test_halves_add_up_to_the_whole() -> None:
    batch = collate_windows(text(97, ends=(31,)), np.arange(0, 65, 13), 13, END)
    model = small_model()
    halves = batch.halves()
    assert sum(half.num_targets for half in halves) == batch.num_targets == 65
    total = sum(language_loss(model, half, 0.1)[0] for half in halves)
    torch.testing.assert_close(total, language_loss(model, batch, 0.1)[0], atol=1e-4, rtol=0)
    (single, *_) = collate_windows(text(29), np.array([3]), 5, END).halves()
    assert len(single.halves()) == 1 and single.halves()[0] is single


def test_validation_measures_and_shows_how_the_text_would_go_on() -> None:
    found = task(text(97)).validate()
    assert found.scores["bits per byte"] == pytest.approx(found.loss * 96 / 97 / np.log(2))
    assert found.examples[0]["held out"] and found.examples[0]["continued"]
