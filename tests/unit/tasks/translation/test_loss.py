import numpy as np
import pytest
import torch

from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.task import collate, source_gain, token_log_probabilities, translation_loss

SOURCES = [np.array([5, 6, 7]), np.array([8]), np.array([9, 10]), np.array([5, 5, 5])]
TARGETS = [np.array([11, 12]), np.array([13, 14, 15, 16]), np.array([], dtype=np.int64), np.array([3])]


def small_model() -> EncoderDecoder:
    torch.manual_seed(1)
    stack = StackConfig(num_layers=1, dropout=0.0, attention=AttentionConfig(num_heads=3))
    return EncoderDecoder(EncoderDecoderConfig(19, 12, 23, encoder=stack, decoder=stack)).eval()


def test_the_decoder_reads_the_target_shifted_by_one_behind_a_start_token() -> None:
    batch = collate(SOURCES[:2], TARGETS[:2])
    assert batch.source_BS.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]
    assert batch.source_lengths_B.tolist() == [4, 2]
    assert batch.target_BT.tolist() == [[1, 11, 12, 0, 0], [1, 13, 14, 15, 16]]
    assert batch.labels_BT.tolist() == [[11, 12, 2, 0, 0], [13, 14, 15, 16, 2]]
    assert (batch.num_targets, batch.num_real, batch.num_tokens) == (8, 14, 18)


def test_the_loss_is_the_sum_over_the_pairs_by_themselves() -> None:
    model = small_model()
    whole = translation_loss(model, collate(SOURCES, TARGETS), 0.1)
    parts = [translation_loss(model, collate([s], [t]), 0.1) for s, t in zip(SOURCES, TARGETS, strict=True)]
    for kind in (0, 1):
        torch.testing.assert_close(whole[kind], sum(part[kind] for part in parts), atol=1e-4, rtol=0)


def test_halves_hold_the_same_pairs_without_needless_padding() -> None:
    batch = collate(SOURCES, TARGETS)
    first, second = batch.halves()
    assert second.target_BT.tolist() == [[1, 0], [1, 3]]
    assert second.source_BS.tolist() == [[9, 10, 2, 0], [5, 5, 5, 2]]
    assert first.num_targets + second.num_targets == batch.num_targets
    assert first.num_real + second.num_real == batch.num_real
    model = small_model()
    total = sum(translation_loss(model, half, 0.0)[1] for half in (first, second))
    torch.testing.assert_close(total, translation_loss(model, batch, 0.0)[1], atol=1e-4, rtol=0)
    single = collate(SOURCES[:1], TARGETS[:1])
    assert single.halves() == [single]


def test_token_scores_add_up_to_the_loss() -> None:
    model = small_model()
    batch = collate(SOURCES, TARGETS)
    rows = token_log_probabilities(model, batch)
    assert [len(row) for row in rows] == [3, 5, 1, 2]
    torch.testing.assert_close(-torch.cat(rows).sum(), translation_loss(model, batch, 0.1)[1], atol=1e-4, rtol=0)


class FourPairs:
    def __len__(self) -> int:
        return 4

    def source(self, index: int) -> np.ndarray:
        return SOURCES[index]

    def target(self, index: int) -> np.ndarray:
        return TARGETS[index]


def test_the_gain_is_the_loss_with_the_sources_of_the_neighbours_less_that_with_the_right_ones() -> None:
    model = small_model()
    found = source_gain(model, FourPairs(), [np.array([2, 0, 3]), np.array([1])])
    neighbours = {2: 3, 0: 2, 3: 0}

    def loss(source: int, target: int) -> float:
        return float(translation_loss(model, collate([SOURCES[source]], [TARGETS[target]]), 0.0)[1])

    expected = sum(loss(other, pair) - loss(pair, pair) for pair, other in neighbours.items())
    assert found == pytest.approx(expected / sum(len(TARGETS[pair]) + 1 for pair in neighbours), abs=1e-5)


def test_a_model_that_does_not_look_at_the_source_gains_nothing_and_a_single_pair_tells_nothing() -> None:
    model = small_model()
    for block in model.decoder:
        torch.nn.init.zeros_(block.cross_attention.output_projection.weight)
    assert source_gain(model, FourPairs(), [np.array([0, 1, 2, 3])]) == pytest.approx(0, abs=1e-6)
    assert source_gain(model, FourPairs(), [np.array([0]), np.array([1])]) is None
