"""One file per model family; the models and their settings are imported on first use."""

from heedful.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__file__, __name__)
