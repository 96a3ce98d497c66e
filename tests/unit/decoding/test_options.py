import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode, length_penalty
from heedful.errors import UserError
from heedful.text.special_tokens import OWN_TOKENS

sizes = st.integers(1, 512)


@given(sizes, sizes, st.floats(0, 10), st.integers(0, 50), st.integers(0, 1000))
def test_options_in_range_are_taken(beam, nbest, alpha, shortest, extra):
    options = DecodingOptions(
        beam=beam + nbest, nbest=nbest, length_penalty=alpha, min_length=shortest, max_length=shortest + extra
    )
    assert options.rows == beam + nbest
    assert options.longest_target(7) == shortest + extra
    assert DecodingOptions(beam=1, max_extra=extra).longest_target(7) == 7 + extra


@given(
    st.floats(0.001, 100),
    st.none() | sizes,
    st.none() | st.floats(1e-6, 1),
    st.integers(0, 2**64 - 1),
    sizes,
)
def test_sampling_options_in_range_are_taken(temperature, top_k, top_p, seed, nbest):
    sampling = SamplingOptions(temperature, top_k, top_p, seed)
    assert DecodingOptions(nbest=nbest, sampling=sampling).rows == nbest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("beam", bad) for bad in (0, -1, 2.0, True, None, "5", 1025, 10**30)],
        *[("nbest", bad) for bad in (0, -3, 1.5, 1025)],
        *[("length_penalty", bad) for bad in (-0.1, math.nan, math.inf, None)],
        *[("min_length", bad) for bad in (-1, 0.5, 65537)],
        *[("max_length", bad) for bad in (-1, 0.5, 65537, 10**9)],
        *[("max_extra", bad) for bad in (-1, None, 65537)],
        *[("no_repeat_ngram", bad) for bad in (-1, 65537)],
    ],
)
def test_an_option_out_of_range_is_named_with_its_value(name, value):
    with pytest.raises(UserError, match=rf"^{name} is .*must be") as error:
        DecodingOptions(**{name: value})
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("temperature", bad) for bad in (0, -1.0, 1e-40, 101, math.nan, math.inf, "hot")],
        *[("top_k", bad) for bad in (0, -5, 2.5, 2**31)],
        *[("top_p", bad) for bad in (0.0, -0.0, 1e-320, 9e-7, 1.01, -0.5, math.nan)],
        *[("seed", bad) for bad in (-1, 2**64, 0.5, None)],
    ],
)
def test_a_sampling_option_out_of_range_is_named_with_its_value(name, value):
    with pytest.raises(UserError, match=rf"^{name} is .*must be"):
        SamplingOptions(**{name: value})


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(UserError, match=r"nbest is 3, but a beam of 2 .* set beam to at least 3"):
        DecodingOptions(beam=2, nbest=3)
    with pytest.raises(UserError, match=r"beam is 2, but sampling .* set nbest"):
        DecodingOptions(beam=2, sampling=SamplingOptions())
    with pytest.raises(UserError, match="min_length is 8, more than max_length, which is 7"):
        DecodingOptions(beam=1, min_length=8, max_length=7)


def test_the_default_is_that_of_translating_and_sampling_has_no_beam():
    assert DecodingOptions().beam == 5
    assert DecodingOptions(sampling=SamplingOptions()) == DecodingOptions(beam=1, sampling=SamplingOptions())
    with pytest.raises(UserError, match="beam is 5, but sampling"):
        DecodingOptions(beam=5, sampling=SamplingOptions())


def test_longest_target_is_fifty_tokens_more_unless_said_otherwise():
    assert DecodingOptions(beam=1).longest_target(13) == 63
    assert DecodingOptions(beam=1, max_extra=3).longest_target(13) == 16
    assert DecodingOptions(beam=1, max_length=5).longest_target(13) == 5
    assert DecodingOptions(beam=1, min_length=71).longest_target(13) == 71


def test_length_penalty_is_that_of_the_paper():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert length_penalty(19, 0.0) == 1.0


def test_requests_are_checked(table_model):
    with pytest.raises(UserError, match="request 3: its source holds a special token, id 2"):
        Request(3, [5, 2]).check(OWN_TOKENS)
    with pytest.raises(UserError, match="request 3: its prefix holds a special token, id 0"):
        Request(3, [5], [4, 0]).check(OWN_TOKENS)
    with pytest.raises(UserError, match="index is -1"):
        Request(-1, [5])
    with pytest.raises(UserError, match="the forced prefix has 3 tokens, more than the 2"):
        list(decode(table_model(7), [Request(3, [5], [4, 4, 4])], DecodingOptions(beam=1, max_length=2), 1))


@pytest.mark.parametrize("bad", [0, -1, 2.0, True])
def test_max_sentences_is_checked_at_once(table_model, bad):
    with pytest.raises(UserError, match=r"max_sentences is .* whole number from 1 to 65,536"):
        decode(table_model(7), [], DecodingOptions(beam=1), bad)
