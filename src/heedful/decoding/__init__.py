"""From encoded requests to hypotheses: greedy, beam search and sampling in one loop over refilled slots."""

from heedful.decoding.hypothesis import Decoded, Hypothesis, Request
from heedful.decoding.options import DecodingOptions, SamplingOptions, length_penalty
from heedful.decoding.scheduler import decode

__all__ = [
    "Decoded",
    "DecodingOptions",
    "Hypothesis",
    "Request",
    "SamplingOptions",
    "decode",
    "length_penalty",
]
