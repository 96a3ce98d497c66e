"""heedful trains, runs, looks into and serves Transformers."""

from heedful.lazy_names import lazy_names

__version__ = "0.1.0"

_names, __getattr__, _ = lazy_names(__file__, __name__)
__all__ = ["__version__", *_names]


def __dir__() -> list[str]:
    return sorted(__all__)
