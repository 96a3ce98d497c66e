import numpy as np
import pytest
import torch

from heedful.inspection.attention.recording import recording_view
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.alignment import Aligner
from heedful.tasks.translation.answers import pharaoh
from heedful.tasks.translation.task import collate
from heedful.tasks.translation.with_torch import TorchPairs
from heedful.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def aligner() -> Aligner:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["the red dog runs home"] * 3, 271)
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3))
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 31, encoder=stack, decoder=stack)
    return Aligner(TorchPairs(EncoderDecoder(config).eval()), tokenizer)


def test_weights_are_the_mean_over_heads_and_layers_of_the_recorded_ones(aligner: Aligner) -> None:
    sources = [aligner.tokenizer.encode(text) for text in ("the dog", "red")]
    targets = [aligner.tokenizer.encode(text) for text in ("runs", "the red dog")]
    found = aligner.computation.cross_weights(sources, targets)
    view, recorders = recording_view(aligner.computation.model)
    for source, target, weights in zip(sources, targets, found, strict=True):
        batch = collate([np.array(source)], [np.array(target)])
        with torch.inference_mode():
            view.hidden(batch.source_BS, batch.target_BT, batch.source_lengths_B)
        layers = [recorders[f"decoder.{layer}.cross_attention"].weights for layer in range(2)]
        expected = torch.stack([each[0].mean(0) for each in layers]).mean(0)[: len(target), : len(source)]
        torch.testing.assert_close(torch.from_numpy(weights), expected)


def test_word_weights_add_up_over_the_subwords_of_a_source_word(aligner: Aligner) -> None:
    source, target = aligner.tokenizer.encode("the dogs run"), aligner.tokenizer.encode("red dog")
    (weights,) = aligner.computation.cross_weights([source], [target])
    (by_word,) = aligner.word_weights([source], [target])
    assert by_word.shape == (2, 3)
    counts = np.bincount(aligner.tokenizer.word_of_token(target))
    assert (by_word.sum(1) * counts).sum() == pytest.approx(float(weights.sum()), abs=1e-5)


def test_nothing_aligns_with_nothing(aligner: Aligner) -> None:
    assert aligner.align([[]], [aligner.tokenizer.encode("dog")]) == [[]]
    assert aligner.align([aligner.tokenizer.encode("dog")], [[]]) == [[]]


def test_pharaoh() -> None:
    assert pharaoh([(0, 0), (2, 1)]) == "0-0 2-1"
