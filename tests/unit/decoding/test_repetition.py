"""Rules against repetition: what they forbid, and that both engines mean the same by them."""

import pytest
import torch

from core_folders import both, family_settings, save, texts
from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.repetition import against_repetition
from heedful.errors import UserError

CLOSE = {"rtol": 1e-5, "atol": 1e-4}


@pytest.fixture(scope="module", params=["encoder_decoder", "decoder_only"])
def engines(request, tmp_path_factory):
    """The same model by both engines; it repeats itself, as untrained ones do."""
    settings = family_settings(request.param, {"tied_output": False}, norm="pre")
    return both(save(tmp_path_factory.mktemp("model"), request.param, settings, output=1.5))


def found(model, options, prefix=()):
    requests = [Request(number, source, prefix) for number, source in enumerate(texts((3, 7, 1, 11, 5), 23))]
    return {each.index: each.hypotheses for each in decode(model, requests, options, 5)}


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(beam=5, max_length=19, repetition_penalty=1.7),
        DecodingOptions(beam=1, max_length=19, no_repeat_ngram=1),
        DecodingOptions(beam=3, nbest=3, max_length=19, no_repeat_ngram=2, repetition_penalty=1.3),
        DecodingOptions(max_length=13, no_repeat_ngram=3, sampling=SamplingOptions(temperature=0.7, seed=5)),
        DecodingOptions(beam=1, min_length=37, max_length=41, no_repeat_ngram=1),
        DecodingOptions(min_length=37, max_length=41, no_repeat_ngram=1, sampling=SamplingOptions(seed=5)),
    ],
    ids=["penalty", "no token twice", "both", "samples", "no token left", "no token left to draw"],
)
@pytest.mark.parametrize("prefix", [(), (17, 19, 17, 19, 17)], ids=["free", "forced"])
def test_both_engines_find_the_same(engines, options, prefix) -> None:
    by_core, by_torch = (found(model, options, prefix) for model in engines)
    for index, hypotheses in by_torch.items():
        assert all(each.tokens[: len(prefix)] == list(prefix) for each in hypotheses)
        assert [each.tokens for each in by_core[index]] == [each.tokens for each in hypotheses]
        for ours, theirs in zip(by_core[index], hypotheses, strict=True):
            torch.testing.assert_close(torch.tensor(ours.token_scores), torch.tensor(theirs.token_scores), **CLOSE)


def test_the_scores_of_a_prefix_are_the_models_own(engines) -> None:
    prefix = (17, 19, 17, 19, 17)
    for model in engines:
        free = found(model, DecodingOptions(beam=1, max_length=7), prefix)
        for rules in ({"no_repeat_ngram": 1}, {"repetition_penalty": 1.7}):
            for index, (ours,) in found(model, DecodingOptions(beam=1, max_length=7, **rules), prefix).items():
                assert ours.token_scores[: len(prefix)] == free[index][0].token_scores[: len(prefix)]
                assert ours.finished or len(ours.tokens) > len(prefix)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_again(engines, size: int) -> None:
    for model in engines:
        for number, (hypothesis,) in found(model, DecodingOptions(beam=1, max_length=17, no_repeat_ngram=size)).items():
            before = list(texts((3, 7, 1, 11, 5), 23)[number]) if model.continues_text else []
            text = [*before, *hypothesis.tokens]
            added = range(max(0, len(before) - size + 1), len(text) - size + 1)
            ngrams = [tuple(text[start : start + size]) for start in range(len(text) - size + 1)]
            assert all(ngrams[start] not in ngrams[:start] for start in added)


def test_a_penalty_multiplies_log_probabilities() -> None:
    logits_V = torch.tensor([0.5, 1.5, -1.0, 0.0])
    expected = logits_V.log_softmax(0)
    expected[[1, 3]] *= 1.25
    peak, log_peak = logits_V.amax(), logits_V.log_softmax(0).amax()
    against_repetition(logits_V, peak, log_peak, [3, 1, 3], DecodingOptions(repetition_penalty=1.25))
    torch.testing.assert_close((logits_V - peak) + log_peak, expected)


@pytest.mark.parametrize(
    "wrong", [{"repetition_penalty": 0.5}, {"repetition_penalty": float("nan")}, {"no_repeat_ngram": -1}]
)
def test_wrong_rules_are_refused(wrong) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        DecodingOptions(**wrong)
