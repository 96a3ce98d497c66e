"""What decoding promises, with the real model and random weights."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode, length_penalty
from heedful.layers import int8_linear
from heedful.layers.int8_linear import with_int8_weights
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.recurrent import Recurrent
from heedful.models.shortlist_output import ShortlistOutput
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.stack import StackConfig
from heedful.text.shortlist import Shortlist

START, END = 1, 2
VOCABULARY = 131


def transformer(output_bias=False):
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3))
    settings = {"tied_output": False, "encoder": stack, "decoder": stack, "output_bias": output_bias}
    return EncoderDecoder(EncoderDecoderConfig(VOCABULARY, 24, **settings))


def recurrent():
    model = Recurrent(RecurrentConfig(VOCABULARY, 24, 46, tied_output=False))
    with torch.no_grad():
        # Its untrained states are small, and hardly change from one token to the next.
        model.decoder.combination.weight *= 6.0
    return model


def with_biases(positions):
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3, num_key_value_heads=1))
    settings = {"positions": positions, "tied_output": False, "encoder": stack, "decoder": stack}
    return EncoderDecoder(EncoderDecoderConfig(VOCABULARY, 24, **settings))


def told_apart(make):
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        # Untrained logits hardly tell the tokens apart; END must come about now and then.
        model.output.weight *= 3.0
        model.output.weight[END] *= 2.0
    return model


@pytest.fixture(scope="module", params=[transformer, recurrent])
def model(request):
    return told_apart(request.param)


@pytest.fixture(scope="module")
def int8_model():
    model = told_apart(transformer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int8_linear, "SMALLEST_RATIO", 0)
        with_int8_weights(model)
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    return model


def mixed_requests(count, seed=0, prefixes=True):
    draw = random.Random(seed)
    lengths = [draw.choice((0, 1, 3, 5, 11, 29)) for _ in range(count)]
    lengths[7] = 71  # beyond the lane of short sentences
    sources = [[draw.randrange(3, VOCABULARY) for _ in range(length)] for length in lengths]
    return [Request(n, source, [5, 7, 11][: n % 7 % 4 * prefixes]) for n, source in enumerate(sources)]


def by_index(results):
    return {result.index: result.hypotheses for result in results}


@torch.no_grad()
def full_log_probabilities(model, source, tokens):
    """The log-probabilities T V of what follows START and each token, from one uncached forward pass."""
    source_BS = torch.tensor([[*source, END]])
    target_BT = torch.tensor([[START, *tokens]])
    return model(source_BS, target_BT, torch.tensor([source_BS.shape[1]]))[0].double().log_softmax(-1)


SETTINGS = {
    "greedy": DecodingOptions(beam=1, max_extra=5),
    "beam": DecodingOptions(beam=5, nbest=3, max_extra=5, min_length=2),
    "sampling": DecodingOptions(nbest=2, max_extra=5, sampling=SamplingOptions(0.7, top_p=0.95, seed=3)),
}


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_tokens_and_scores_are_bit_equal_at_any_batch_size_and_order(model, options):
    expected = check_bit_equal(model, options)
    lengths = {len(hypotheses[0].tokens) for hypotheses in expected.values()}
    assert len(lengths) > 6
    assert len({h.finished for hypotheses in expected.values() for h in hypotheses}) == 2


@pytest.mark.parametrize("positions", ["alibi", "relative_buckets"])
def test_biases_on_the_scores_are_bit_equal_too(positions):
    model = told_apart(lambda: with_biases(positions))
    for parameter in model.target_embedding.positions.parameters():
        nn.init.normal_(parameter)
    check_bit_equal(model, SETTINGS["beam"])


def test_int8_is_bit_equal_too(int8_model):
    check_bit_equal(int8_model, SETTINGS["beam"])


def random_shortlist(frequent):
    draw = np.random.default_rng(7)
    order = np.concatenate([[END], 3 + draw.permutation(VOCABULARY - 3)])
    likely = draw.choice(order[frequent:], (VOCABULARY, 5))
    return Shortlist(order[:frequent], likely, draw.random((VOCABULARY, 5), np.float32))


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_shortlist_does_not_depend_on_other_sentences_either(options):
    model = told_apart(transformer)
    model.shortlist = ShortlistOutput(random_shortlist(61), model.output)
    check_bit_equal(model, options, prefixes=False)


def test_a_shortlist_of_everything_changes_nothing():
    model, options = told_apart(lambda: transformer(output_bias=True)), SETTINGS["beam"]
    with torch.no_grad():
        model.output.bias[:END] = -1e4  # special tokens have a probability too, without a shortlist
    requests = mixed_requests(23, prefixes=False)
    expected = by_index(decode(model, requests, options, 7))
    # Nothing is lost if the tokens that are not frequent are called for by every source token.
    some = random_shortlist(VOCABULARY - 2 - 5)
    rest = np.setdiff1d(np.arange(3, VOCABULARY), some.frequent_F)
    everywhere = np.tile(rest, (VOCABULARY, 1))
    all_of_it = Shortlist(some.frequent_F, everywhere, np.ones(everywhere.shape, np.float32))
    model.shortlist = ShortlistOutput(all_of_it, model.output)
    for index, hypotheses in by_index(decode(model, requests, options, 7)).items():
        assert [h.tokens for h in hypotheses] == [h.tokens for h in expected[index]]
        for found, wanted in zip(hypotheses, expected[index], strict=True):
            assert found.token_scores == pytest.approx(wanted.token_scores, abs=1e-5)


def check_bit_equal(model, options, prefixes=True):
    requests = mixed_requests(29, prefixes=prefixes)
    expected = by_index(decode(model, requests, options, 64))
    assert sorted(expected) == list(range(29))
    random.Random(1).shuffle(requests)
    for max_sentences in (1, 7, 64):
        found = by_index(decode(model, iter(requests), options, max_sentences))
        assert found == expected
    # Endless, as far as the scheduler knows: other capacities, other neighbours.
    stream = (requests[n % 29] for n in range(2 * 29))
    for result in decode(model, stream, options, 7):
        assert result.hypotheses == expected[result.index]
    return expected


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_score_is_that_of_the_text_when_the_model_scores_it(model, options):
    requests = mixed_requests(23, seed=2)
    for index, hypotheses in by_index(decode(model, requests, options, 5)).items():
        for h in hypotheses:
            scored = h.tokens + [END] * h.finished
            log_probabilities = full_log_probabilities(model, requests[index].source, h.tokens)
            scores = [float(log_probabilities[n, token]) for n, token in enumerate(scored)]
            assert h.token_scores == pytest.approx(scores, abs=2e-5)
            assert h.score == pytest.approx(sum(scores) / length_penalty(len(scores), 0.6), abs=5e-5)
            assert list(h.tokens[: len(requests[index].prefix)]) == list(requests[index].prefix)


def test_a_beam_of_one_is_greedy_search(model):
    options = DecodingOptions(beam=1, max_extra=5, min_length=2)
    requests = mixed_requests(19, seed=3)
    for index, (found,) in by_index(decode(model, requests, options, 5)).items():
        tokens, finished = list(requests[index].prefix), False
        longest = max(len(requests[index].source), len(tokens)) + 5
        while not finished and len(tokens) <= longest:
            scores = full_log_probabilities(model, requests[index].source, tokens)[-1]
            first = END if len(tokens) >= 2 else END + 1
            tokens.append(first + int(scores[first:].argmax()))
            finished = tokens[-1] == END
        assert (found.tokens, found.finished) == (tokens[:-1], finished)


def test_a_wider_beam_finds_no_worse_on_the_whole(model):
    requests = mixed_requests(19, seed=4)
    means = []
    for beam in (1, 5):
        results = decode(model, requests, DecodingOptions(beam=beam, max_extra=5), 7)
        means.append(sum(hypotheses[0].score for hypotheses in by_index(results).values()) / 19)
    assert means[1] >= means[0]


def test_a_row_refilled_is_a_row_fresh(model):
    requests = mixed_requests(13, seed=5)
    options = DecodingOptions(beam=3, nbest=3, max_extra=5)
    for result in decode(model, requests, options, 2):
        (alone,) = decode(model, [requests[result.index]], options, 1)
        assert alone == result


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative_buckets", "none"])
def test_targets_keep_within_the_models_positions(positions):
    stack = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=3))
    config = EncoderDecoderConfig(
        VOCABULARY, width=24, max_length=13, positions=positions, encoder=stack, decoder=stack
    )
    model = EncoderDecoder(config).eval()
    (result,) = decode(model, [Request(0, range(3, 16))], DecodingOptions(beam=1, max_extra=23, min_length=13), 1)
    longest = 13 if positions in ("learned", "rotary") else 36
    assert 13 <= len(result.hypotheses[0].tokens) <= longest
