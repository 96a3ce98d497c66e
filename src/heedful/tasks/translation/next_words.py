"""What could come next after the beginning of a translation: the likeliest words."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import SentenceProgress
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from heedful.tasks.translation.task import TranslationModel

# A word is cut after this many subwords; in scripts without spaces it might not end.
MOST_SUBWORDS = 12


@dataclass(frozen=True)
class NextWord:
    """A word, with the space before it if it has one, and its probability."""

    text: str
    probability: float


class NextWords:
    """Takes the likeliest next tokens, and completes each to a word."""

    def __init__(
        self, model: TranslationModel, tokenizer: Tokenizer, source: Sequence[int], prefix: Sequence[int]
    ) -> None:
        self.model, self.tokenizer, self.source, self.prefix = model, tokenizer, source, list(prefix)
        self.start = tokenizer.decode(prefix)
        # For each word, its tokens and their log-probabilities.
        self.words: list[list[tuple[int, float]]] = []

    def find(self, count: int) -> list[NextWord]:
        """Up to `count` words, the likeliest first."""
        with one_thread(), flushed_denormals():
            self._complete(self._first_tokens(count))
        found: dict[str, float] = {}
        for word in self.words:
            text, probability = self._text([token for token, _ in word]), math.exp(sum(score for _, score in word))
            # Other ways to split the same word into subwords add to it.
            found[text] = found.get(text, 0.0) + probability
        words = [NextWord(text, probability) for text, probability in found.items() if text.strip()]
        return sorted(words, key=lambda word: -word.probability)

    def _first_tokens(self, count: int) -> list[int]:
        from heedful.decoding.run import decode_stepwise

        first: list[int] = []

        def watch(progress: SentenceProgress) -> bool:
            if len(progress.tokens) <= len(self.prefix):
                return True
            first.extend(token for token, _ in progress.likeliest(count))
            return False

        # The end is not a word: it must not come before the next one.
        options = DecodingOptions(beam=1, min_length=len(self.prefix) + 1)
        list(decode_stepwise(self.model, [Request(0, self.source, self.prefix)], options, 1, watch))
        return first

    def _complete(self, first: list[int]) -> None:
        from heedful.decoding.run import decode_stepwise

        self.words = [[] for _ in first]
        requests = [Request(n, self.source, [*self.prefix, token]) for n, token in enumerate(first)]
        if requests:
            list(decode_stepwise(self.model, requests, DecodingOptions(beam=1), len(requests), self._watch))

    def _watch(self, progress: SentenceProgress) -> bool:
        """Add a token to its word; False once the word is complete."""
        token, score = progress.last
        word = self.words[progress.index]
        if len(progress.tokens) <= len(self.prefix):
            return True
        if word and not self._goes_on(token):
            return False
        word.append((token, score))
        return len(word) < MOST_SUBWORDS

    def _goes_on(self, token: int) -> bool:
        """Whether a token continues the word before it: with a letter, or with part of one."""
        text = self.tokenizer.token_bytes(token).decode("utf-8", "replace")
        return text[:1] == "\ufffd" or unicodedata.category(text[:1] or " ")[0] in "LM"

    def _text(self, word: list[int]) -> str:
        whole = self.tokenizer.decode([*self.prefix, *word])
        if whole.startswith(self.start):
            return whole[len(self.start) :]
        return b"".join(map(self.tokenizer.token_bytes, word)).decode("utf-8", "replace")
