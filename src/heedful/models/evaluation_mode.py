"""Computation without dropout, whatever mode a model is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """A block in which a model, if it is a module, is in evaluation mode; its parts then return to their own modes."""
    training = [each for each in model.modules() if each.training] if hasattr(model, "modules") else []
    for each in training:
        each.training = False
    try:
        yield
    finally:
        for each in training:
            each.training = True
