"""A masked language model, ready to use."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from heedful.config import require_whole
from heedful.decoding.options import LARGEST_VOCABULARY
from heedful.errors import UserError
from heedful.tasks.encoding.pipeline import Encoder, probabilities
from heedful.tasks.given_texts import Text, texts_as_list
from heedful.tasks.remarks import TextWarning
from heedful.text.cleaning import clean_text
from heedful.text.framing import Framed

if TYPE_CHECKING:
    from heedful.tasks.encoding.attention import Predicted

# How a text marks a hidden word.
MASK = "[MASK]"


@dataclass(frozen=True)
class Filling:
    """A token that may fill a mask."""

    token: str
    probability: float


class UnfilledTextWarning(TextWarning):
    """Nothing can be guessed in the text."""


class MaskedLanguageModel(Encoder):
    """A model that guesses hidden words."""

    @overload
    def fill(self, text: str, top: int = 5) -> list[list[Filling]]: ...  # type: ignore[overload-overlap]

    @overload
    def fill(self, text: Iterable[str], top: int = 5) -> list[list[list[Filling]]]: ...

    def fill(self, text: str | Iterable[str], top: int = 5) -> list[list[Filling]] | list[list[list[Filling]]]:
        """For one text a list with an entry for each `[MASK]`, even a single one; for several a list of such lists.

        An entry is the list of the likeliest tokens, the likeliest first.

        Of several texts, one in which nothing can be guessed gets an empty answer, with a warning if it is not blank.
        """
        require_whole(top, "top", 1, LARGEST_VOCABULARY)
        texts = texts_as_list(text, "text")
        if isinstance(text, str):
            return self._filled(*self._encode_masked(text), top)
        found: list[list[list[Filling]]] = []
        for index, each in enumerate(texts):
            found.append([])
            if each.strip():
                try:
                    encoded = self._encode_masked(each)
                except UserError as error:
                    warnings.warn(UnfilledTextWarning(index, f"stays blank: {error}"), stacklevel=2)
                    continue
                found[-1] = self._filled(*encoded, top)
        return found

    def _filled(self, ids: list[int], places: list[int], top: int) -> list[list[Filling]]:
        special = self.model.special_tokens
        (logits_TV,) = self.logits([Framed(ids, len(ids), False)], 1)
        logits_TV[:, [token for token in special.ids if token < logits_TV.shape[1]]] = -np.inf
        logits_TV = logits_TV[:, : self.tokenizer.vocabulary_size]
        return [self._fillings(logits_TV[place], top) for place in places]

    def looked_into(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...], Predicted | None]:
        """A text or a pair; a text with masks is read by itself, and each `[MASK]` is guessed."""
        from heedful.tasks.encoding.attention import Predicted

        if target is not None or not isinstance(text, str) or MASK not in text:
            return super().looked_into(text, target)
        ids, places = self._encode_masked(text)
        return Framed(ids, len(ids), False), (clean_text(text),), Predicted(places, self.tokenizer.token_text)

    def _encode_masked(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text with masks, and the places of the masks."""
        if MASK not in clean_text(text):
            raise UserError(f"the text has no {MASK}: write it where a word is to be guessed")
        special = self.model.special_tokens
        assert special.mask is not None
        # A subword holds the space before it.
        before, *others = [part.rstrip(" ") for part in clean_text(text).split(MASK)]
        ids = [special.start, *(self.tokenizer.encode(before) if before else [])]
        places = []
        for part in others:
            places.append(len(ids))
            ids += [special.mask, *self.tokenizer.encode_after(part)]
        ids.append(special.end)
        if len(ids) > self.model.max_length:
            raise UserError(f"the text has {len(ids)} tokens, and the model takes {self.model.max_length}")
        return ids, places

    def _fillings(self, logits_V: np.ndarray, top: int) -> list[Filling]:
        scores = probabilities(logits_V)
        best = [token for token in np.argsort(-logits_V, kind="stable")[:top] if logits_V[token] > -np.inf]
        return [Filling(self.tokenizer.token_text(int(token)).strip(), float(scores[token])) for token in best]
