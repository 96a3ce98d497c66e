"""What in a text a language model does not know: its vocabulary reads all of that as one and the same token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.tasks.remarks import TextWarning
from heedful.text.tokenizer import Tokenizer


class UnknownTokensWarning(TextWarning):
    """A text has characters, or other tokens, that the model does not know."""


class UnknownPromptWarning(UnknownTokensWarning):
    """The same of a prompt."""

    noun = "prompt"


def unknown_tokens(tokenizer: Tokenizer, ids: Sequence[int] | NDArray[np.integer], added: int = 0) -> str | None:
    """How many tokens of a text are unknown, out of how many, and their share; None if all are known.

    `added` of the ids are not of the text, but stand before and after it.
    """
    unknown = tokenizer.special_tokens.unknown
    count = 0 if unknown is None else int(np.count_nonzero(np.asarray(ids) == unknown))
    if not count:
        return None
    tokens = len(ids) - added
    what = "characters" if tokenizer.is_of_characters else "tokens"
    return f"{count:,} of {tokens:,} {what} ({count / tokens:.1%}) that the model does not know"
