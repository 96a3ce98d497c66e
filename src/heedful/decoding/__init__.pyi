from heedful.decoding.hypothesis import Decoded as Decoded
from heedful.decoding.hypothesis import Hypothesis as Hypothesis
from heedful.decoding.hypothesis import Request as Request
from heedful.decoding.options import DecodingOptions as DecodingOptions
from heedful.decoding.options import SamplingOptions as SamplingOptions
from heedful.decoding.options import length_penalty as length_penalty
from heedful.decoding.run import decode as decode
