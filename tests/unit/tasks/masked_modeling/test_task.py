import numpy as np
import pytest

from heedful.tasks.labelling.data import NO_LABEL
from heedful.tasks.masked_modeling.task import MaskedTexts, Masking
from heedful.text.special_tokens import SpecialTokens

SPECIAL = SpecialTokens(mask=3)
ORDINARY = np.arange(4, 503)


def masking(seed: int = 1, **settings) -> Masking:
    return Masking(SPECIAL, ORDINARY, seed, **settings)


def ids(count: int) -> np.ndarray:
    return np.random.default_rng(5).integers(4, 503, count).astype(np.uint16)


def test_how_many_tokens_are_hidden_and_how() -> None:
    text = ids(20_011)
    shown, labels = masking().hide(text, 0, 0)
    chosen = labels != NO_LABEL
    assert chosen.sum() == round(0.15 * 20_011)
    assert (labels[chosen] == text[chosen]).all()
    assert (shown[~chosen] == text[~chosen]).all()
    masked, kept = (shown == 3)[chosen].mean(), (shown == text)[chosen].mean()
    assert masked == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1, abs=0.02)
    replaced = shown[chosen & (shown != 3) & (shown != text)]
    assert len(set(replaced.tolist())) > 150 and replaced.min() >= 4


def test_every_text_has_something_to_guess() -> None:
    for length in range(1, 12):
        assert (masking().hide(ids(length), 3, length)[1] != NO_LABEL).sum() >= 1


def test_what_is_hidden_depends_on_seed_epoch_and_index_alone() -> None:
    text = ids(211)
    first = masking().hide(text, 2, 7)
    again = masking().hide(text, 2, 7)
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    for other in (masking(2).hide(text, 2, 7), masking().hide(text, 3, 7), masking().hide(text, 2, 8)):
        assert (first[1] != other[1]).any()


def test_whole_words_are_hidden_together() -> None:
    begins = np.zeros(503, np.bool_)
    begins[4:200] = True
    text = ids(5003)
    _, labels = masking(begins_word_V=begins).hide(text, 0, 0)
    chosen = labels != NO_LABEL
    word = np.cumsum(begins[text])
    assert all(len(set(chosen[word == number].tolist())) == 1 for number in np.unique(word))
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)


def test_documents_are_cut_into_equal_pieces_that_cover_them() -> None:
    sizes = [5, 29, 1, 14, 15]
    text = np.concatenate([[2], *([*(np.full(size, number + 10)), 2] for number, size in enumerate(sizes))])
    texts = MaskedTexts(text.astype(np.uint16), 16, masking())
    assert texts.lengths.tolist() == [7, 11, 12, 12, 3, 16, 9, 10]
    batch = texts.batch(np.arange(8), 0)
    rows = [row[row >= 0].tolist() for row in batch.labels]
    assert [set(row) for row in rows] == [{10}, {11}, {11}, {11}, {12}, {13}, {14}, {14}]
    assert batch.num_targets == sum(map(len, rows))
    assert (batch.ids_BT[:, 0] == 1).all()
    assert all(row[length - 1] == 2 for row, length in zip(batch.ids_BT, batch.lengths_B, strict=True))
