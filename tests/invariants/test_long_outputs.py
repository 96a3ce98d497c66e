"""Bit-equal at any batch size up to the longest output: models that never end, sources of very different lengths."""

import random

import numpy as np
import pytest
import torch

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.layers import int8_linear
from heedful.layers.int8_linear import with_int8_weights
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.recurrent import Recurrent
from heedful.models.shortlist_output import ShortlistOutput
from heedful.models.xlnet import XLNet
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.text.shortlist import Shortlist

pytestmark = pytest.mark.slow

END = 2
VOCABULARY = 211


def stack(heads=2, **settings):
    attention = AttentionConfig(num_heads=heads, **settings)
    return StackConfig(num_layers=1, attention=attention, feed_forward=FeedForwardConfig(inner_width=40))


def transformer(width=32, positions="sinusoidal", **settings):
    stacks = {"encoder": stack(**settings), "decoder": stack(**settings)}
    more = {"positions": positions, "tied_output": False, "output_bias": True}
    return EncoderDecoder(EncoderDecoderConfig(VOCABULARY, width, **more, **stacks))


def int8():
    model = transformer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int8_linear, "SMALLEST_RATIO", 0)
        with_int8_weights(model)
    return model


def shortlisted():
    model = transformer()
    draw = np.random.default_rng(7)
    order = np.concatenate([[END], 3 + draw.permutation(VOCABULARY - 3)])
    likely = draw.choice(order[61:], (VOCABULARY, 5))
    strengths = draw.random((VOCABULARY, 5), np.float32)
    model.shortlist = ShortlistOutput(Shortlist(order[:61], likely, strengths), model.output)
    return model


MODELS = {
    "transformer": transformer,
    "other widths": lambda: transformer(key_width=12, value_width=7),
    "additive": lambda: transformer(scoring="additive"),
    "alibi": lambda: transformer(positions="alibi"),
    "int8": int8,
    "shortlist": shortlisted,
    "recurrent": lambda: Recurrent(RecurrentConfig(VOCABULARY, 32, 46, tied_output=False)),
    "decoder-only": lambda: DecoderOnly(DecoderOnlyConfig(VOCABULARY, 32, 1001, tied_output=False, stack=stack())),
    "relative buckets": lambda: DecoderOnly(
        DecoderOnlyConfig(VOCABULARY, 32, 1001, "relative_buckets", tied_output=False, stack=stack())
    ),
    "xlnet": lambda: XLNet(XLNetConfig(VOCABULARY, 32, 1001, stack=stack())),
}
SAMPLING = SamplingOptions(1.3, seed=3)
SEARCHES = {"greedy": {"beam": 1}, "beam": {"beam": 5, "nbest": 2}, "sampling": {"nbest": 2, "sampling": SAMPLING}}
CASES = [("transformer", search) for search in SEARCHES] + [
    ("other widths", "greedy"),
    ("additive", "greedy"),
    ("int8", "beam"),
    ("shortlist", "beam"),
    ("recurrent", "beam"),
    ("decoder-only", "greedy"),
    ("decoder-only", "sampling"),
    ("xlnet", "sampling"),
    ("alibi", "beam"),
    ("relative buckets", "sampling"),
]


def built(name):
    """A model that tells tokens apart."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        if isinstance(model.output, torch.nn.Linear):
            model.output.weight *= 3.0
    return model


def found_at(model, requests, options, size):
    return {each.index: each.hypotheses for each in decode(model, requests, options, size)}


def check(model, requests, options):
    expected = found_at(model, requests, options, 64)
    shuffled = random.Random(1).sample(requests, len(requests))
    for size in (1, 3):
        assert found_at(model, shuffled, options, size) == expected
    return expected


@pytest.mark.parametrize(("name", "search"), CASES)
def test_outputs_that_never_end_are_bit_equal(name, search):
    draw = random.Random(2)
    # Limits of their own, so that short outputs are decoded beside a long one.
    requests = [
        Request(number, [draw.randrange(3, VOCABULARY) for _ in range(3 + 5 * number)], max_length=longest)
        for number, longest in enumerate((270, 13, 47))
    ]
    # The end is forbidden until then: the model never ends.
    options = DecodingOptions(min_length=300, max_extra=1, **SEARCHES[search])
    expected = check(built(name), requests, options)
    assert [len(expected[number][0].tokens) for number in range(3)] == [270, 13, 47]


@pytest.mark.parametrize("name", MODELS)
def test_sources_of_very_different_lengths_are_bit_equal(name):
    model = built(name)
    draw = random.Random(3)
    lengths = (3, 700, 40, 290, 1, 260, 300, 151, 186, 203)
    requests = [Request(n, [draw.randrange(3, VOCABULARY) for _ in range(length)]) for n, length in enumerate(lengths)]
    expected = check(model, requests, DecodingOptions(beam=3, max_length=4))
    assert sorted(expected) == list(range(len(lengths)))


def test_a_wide_model_is_bit_equal():
    """Where products are large, kernels differ by the number of rows, of which a beam of one sentence has few."""
    torch.manual_seed(0)
    model = transformer(width=512).eval()
    draw = random.Random(4)
    requests = [Request(n, [draw.randrange(3, VOCABULARY) for _ in range(2 + n)]) for n in range(7)]
    for beam in (1, 5):
        expected = check(model, requests, DecodingOptions(beam=beam, max_length=5))
        assert sorted(expected) == list(range(7))
