"""From encoded requests to hypotheses: greedy, beam search and sampling in one loop over refilled slots."""

from heedful.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__file__, __name__)
