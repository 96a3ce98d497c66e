"""The parts that models are built from, each of which can be used by itself; nothing here knows of models.

They are imported when they are first used.
"""

from heedful.lazy_names import lazy_names

__all__, __getattr__ = lazy_names(__file__, __name__)
