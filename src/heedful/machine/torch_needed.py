"""Whether PyTorch, which training needs, is installed, and the error where it is not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from heedful.errors import UserError


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def torch_missing(what: str) -> UserError:
    """The error where something needs PyTorch, which is not installed."""
    return UserError(f"{what} needs PyTorch, which is not installed: pip install 'heedful[train]'")


def is_about_torch(error: ModuleNotFoundError) -> bool:
    """Whether it was PyTorch that could not be imported."""
    return (error.name or "").partition(".")[0] == "torch"


@contextmanager
def needs_torch(what: str) -> Iterator[None]:
    """Turn a failed import of PyTorch into a UserError that names what needs it; also works as a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not is_about_torch(error):
            raise
        raise torch_missing(what) from None
