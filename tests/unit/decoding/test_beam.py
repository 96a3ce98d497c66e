import itertools
import math

import pytest
import torch

from heedful.decoding import DecodingOptions, Request, decode, length_penalty

END = 2


def decode_one(model, request, options):
    (result,) = decode(model, [request], options, 1)
    assert result.index == request.index
    return result.hypotheses


def score(model, source, tokens, alpha, finished=True):
    """The score of a target, from the model's log-probabilities alone."""
    scored = [*tokens, END] if finished else list(tokens)
    total = sum(float(model.log_probabilities(source, scored[:n])[token]) for n, token in enumerate(scored))
    return total / length_penalty(len(scored), alpha)


def plain_beam_search(model, source, options, prefix=()):
    """Beam search by the rules in words, over lists, and with no early stop."""
    longest = options.longest_target(max(len(source), len(prefix)))
    running, finished = [(0.0, [])], []
    while True:
        candidates = []
        for row, (total, tokens) in enumerate(running):
            scores = model.log_probabilities(source, tokens)
            allowed = range(END if len(tokens) >= options.min_length else END + 1, len(scores))
            if len(tokens) < len(prefix):
                allowed = [prefix[len(tokens)]]
            candidates += [(-(total + float(scores[token])), row, token) for token in allowed]
        best = sorted(candidates)[: options.beam - len(finished)]
        ended = {row for _, row, token in best if token == END}
        finished += [(-total, running[row][1]) for total, row, token in best if token == END]
        children = [(-total, [*running[row][1], token]) for total, row, token in best if token != END]
        if not children or len(running[0][1]) == longest:
            unfinished = [tokens for row, (_, tokens) in enumerate(running) if row not in ended]
            break
        running = children

    def ranked(hypotheses, is_finished):
        alpha = options.length_penalty
        scored = [(-score(model, source, tokens, alpha, is_finished), tokens) for tokens in hypotheses]
        return [(tokens, -value, is_finished) for value, tokens in sorted(scored)]

    return (ranked([t for _, t in finished], True) + ranked(unfinished, False))[: options.nbest]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(7))
def test_a_huge_beam_finds_the_best_of_all_sequences(table_model, alpha, seed):
    model, source, longest = table_model(6, seed=seed), (5, 3), 4
    everything = [tokens for length in range(longest + 1) for tokens in itertools.product((3, 4, 5), repeat=length)]
    best = sorted(everything, key=lambda tokens: -score(model, source, tokens, alpha))
    options = DecodingOptions(beam=500, nbest=11, length_penalty=alpha, min_length=0, max_length=longest)
    found = decode_one(model, Request(0, source), options)
    assert [tuple(h.tokens) for h in found] == best[:11]
    assert all(h.finished for h in found)
    assert found[0].score == pytest.approx(score(model, source, best[0], alpha), abs=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 5.0])
@pytest.mark.parametrize("end_bias", [-2.0, 0.0, 3.0])
def test_the_early_stop_changes_nothing(table_model, beam, alpha, end_bias):
    for seed in range(3):
        model, source = table_model(17, end_bias=end_bias, seed=seed), (7, 3, 5)
        for nbest in {1, beam // 2 + 1, beam}:
            options = DecodingOptions(beam=beam, nbest=nbest, length_penalty=alpha, max_extra=8, min_length=seed % 3)
            prefix = (4, 11)[: seed % 4]
            found = decode_one(model, Request(1, source, prefix), options)
            expected = plain_beam_search(model, source, options, prefix)
            assert [(h.tokens, h.finished) for h in found] == [(t, done) for t, _, done in expected]
            assert [h.score for h in found] == pytest.approx([value for _, value, _ in expected], abs=1e-5)


def test_a_longer_hypothesis_can_overtake_a_finished_one(table_model):
    model = table_model(7)

    def logits(source, tokens):
        # Ending at once is likelier than going on, but after the first step there is one way only.
        probabilities = torch.full((7,), 1e-6)
        probabilities[END if len(tokens) == 8 else 3] = 1.0
        if not tokens:
            probabilities[[END, 3]] = torch.tensor([0.52, 0.48])
        return probabilities.log()

    model.logits = logits
    (found,) = decode_one(model, Request(0, (3,)), DecodingOptions(beam=2, max_length=11))
    assert found.tokens == [3] * 8
    options = DecodingOptions(beam=2, min_length=0, max_length=11, length_penalty=0)
    (found,) = decode_one(model, Request(0, (3,)), options)
    assert found.tokens == []


def test_the_early_stop_saves_steps(table_model):
    model = table_model(17, end_bias=4.0)
    decode_one(model, Request(0, (7, 3)), DecodingOptions(beam=5, max_length=97))
    assert max(len(tokens) for _, tokens in model.cached) < 30


@pytest.mark.parametrize("quantum", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(table_model, quantum):
    model, options = table_model(13, quantum=quantum), DecodingOptions(beam=1, min_length=0, max_extra=7)
    for source in itertools.product((3, 5, 7), repeat=3):
        tokens, finished = [], False
        while not finished and len(tokens) <= len(source) + 7:
            row = model.logits((*source, END), tuple(tokens)).tolist()
            token = max(range(END, 13), key=lambda candidate: (row[candidate], -candidate))
            finished = token == END
            tokens.append(token)
        (found,) = decode_one(model, Request(0, source), options)
        assert (found.tokens, found.finished) == (tokens[:-1], finished)


def test_nbest_is_sorted_and_distinct_and_scores_add_up(table_model):
    model, source = table_model(11, end_bias=1.0), (3, 4, 5)
    found = decode_one(model, Request(0, source), DecodingOptions(beam=7, nbest=7, max_extra=11))
    assert len(found) == 7
    assert len({tuple(h.tokens) for h in found}) == 7
    keys = [(not h.finished, -h.score) for h in found]
    assert keys == sorted(keys)
    for h in found:
        assert len(h.token_scores) == len(h.tokens) + h.finished
        assert h.score == pytest.approx(math.fsum(h.token_scores) / length_penalty(len(h.token_scores), 0.6))
        assert h.score == pytest.approx(score(model, source, h.tokens, 0.6, h.finished), abs=1e-5)


def test_a_hypothesis_that_does_not_end_is_unfinished(table_model):
    model = table_model(11, end_bias=-50.0)
    found = decode_one(model, Request(0, (3,)), DecodingOptions(beam=3, nbest=2, max_length=5))
    assert [(len(h.tokens), len(h.token_scores), h.finished) for h in found] == [(5, 5, False)] * 2
    assert found[0].score >= found[1].score


def test_a_target_of_the_maximum_length_can_be_finished(table_model):
    model = table_model(11, end_bias=50.0)
    options = DecodingOptions(beam=1, min_length=5, max_length=5)
    (found,) = decode_one(model, Request(0, (3,)), options)
    assert (len(found.tokens), found.finished) == (5, True)


def test_the_minimum_length_holds_back_the_end(table_model):
    model = table_model(11, end_bias=20.0)
    for shortest in (0, 1, 7):
        for h in decode_one(
            model, Request(0, (3, 4)), DecodingOptions(beam=3, nbest=3, min_length=shortest, max_extra=13)
        ):
            assert len(h.tokens) >= shortest
            assert h.score == pytest.approx(score(model, (3, 4), h.tokens, 0.6), abs=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_no_text_is_translated_to_nothing_unless_that_is_asked_for(table_model, beam):
    model = table_model(11, end_bias=9.0)
    for source in ((3,), (3, 4, 5)):
        (found,) = decode_one(model, Request(0, source), DecodingOptions(beam=beam))
        assert found.tokens
        (found,) = decode_one(model, Request(0, source), DecodingOptions(beam=beam, min_length=0))
        assert found.tokens == []


def test_a_maximum_length_of_zero_leaves_the_empty_target(table_model):
    (found,) = decode_one(table_model(11, end_bias=-9.0), Request(0, (3,)), DecodingOptions(beam=1, max_length=0))
    assert (found.tokens, found.token_scores, found.score, found.finished) == ([], [], 0.0, False)
    (found,) = decode_one(table_model(11, end_bias=90.0), Request(0, (3,)), DecodingOptions(beam=1, max_length=0))
    assert (found.tokens, found.finished) == ([], True)


def test_an_empty_source_is_decoded(table_model):
    (found,) = decode_one(table_model(11), Request(0, ()), DecodingOptions(beam=1, max_extra=3))
    assert len(found.tokens) <= 3


def test_a_forced_prefix_is_kept_and_scored(table_model):
    model, prefix = table_model(11), (9, 9, 4, 3)
    for h in decode_one(model, Request(0, (3, 4), prefix), DecodingOptions(beam=5, nbest=5)):
        assert tuple(h.tokens[:4]) == prefix
        assert h.score == pytest.approx(score(model, (3, 4), h.tokens, 0.6, h.finished), abs=1e-5)


def test_a_prefix_may_be_longer_than_the_source_allows_for(table_model):
    prefix = (3, 5, 7) * 29
    (found,) = decode_one(table_model(11), Request(0, (3,), prefix), DecodingOptions(beam=1, max_extra=2))
    assert tuple(found.tokens[:87]) == prefix
    assert len(found.tokens) <= 89


def test_a_beam_wider_than_the_vocabulary_is_filled_as_far_as_possible(table_model):
    model = table_model(4)  # one word, so that there is one target of each length
    found = decode_one(model, Request(0, (3,)), DecodingOptions(beam=29, nbest=29, min_length=0, max_length=5))
    assert {(len(h.tokens), h.finished) for h in found} == {(n, True) for n in range(6)}
    assert len(found) == 6


def test_equal_scores_go_to_the_lower_token_id(table_model):
    model = table_model(23, spread=0.0)  # which makes zeros of both signs
    found = decode_one(model, Request(0, (3,)), DecodingOptions(beam=5, nbest=5, min_length=1, max_length=1))
    assert [h.tokens for h in found] == [[3], [4], [5], [6], [7]]
    assert [h.finished for h in found] == [True, False, False, False, False]
