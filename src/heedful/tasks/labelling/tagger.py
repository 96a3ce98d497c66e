"""A tagger, ready to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from heedful.errors import UserError
from heedful.tasks.encoding.pipeline import DEFAULT_BATCH_SIZE, Encoder, probabilities
from heedful.tasks.given_texts import Text, one_text, several
from heedful.text.cleaning import clean_text
from heedful.text.framing import Framed, frame_words

if TYPE_CHECKING:
    from heedful.tasks.encoding.attention import Predicted


@dataclass(frozen=True)
class TaggedWord:
    """A word with its likeliest tag."""

    word: str
    tag: str
    probability: float


class Tagger(Encoder):
    """A model that tags words."""

    @overload
    def tag(  # type: ignore[overload-overlap]
        self, sentences: str, *, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> list[TaggedWord]: ...

    @overload
    def tag(
        self, sentences: Iterable[str | Sequence[str]], *, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> list[list[TaggedWord]]: ...

    def tag(
        self, sentences: str | Iterable[str | Sequence[str]], *, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> list[TaggedWord] | list[list[TaggedWord]]:
        """Tag the words of one text, or of several sentences in order; a sentence may be a list of words.

        A sentence that is longer than the model can take is read in pieces.
        """
        expected = "a string, or several in a list, each a string or a list of words"
        given = [sentences] if isinstance(sentences, str) else several(sentences, "sentences", expected)
        words = [_words(each, number) for number, each in enumerate(given, 1)]
        flat = iter(self.tokenizer.encode_batch([word for sentence in words for word in sentence]))
        special, longest = self.model.special_tokens, self.model.max_length
        pieces = [
            frame_words([next(flat) for _ in sentence], longest, special) if sentence else [] for sentence in words
        ]
        rows = [Framed(piece.ids, len(piece.ids), False) for sentence in pieces for piece in sentence]
        logits = iter(self.logits(rows, batch_size))
        tagged: list[list[TaggedWord]] = []
        for sentence, its_pieces in zip(words, pieces, strict=True):
            found = [next(logits)[piece.begins] for piece in its_pieces]
            tagged.append(self._tagged(sentence, np.concatenate(found)) if found else [])
        return tagged[0] if isinstance(sentences, str) else tagged

    def looked_into(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...], Predicted | None]:
        """A sentence, and how each word is tagged, which happens at its first subword."""
        from heedful.tasks.encoding.attention import Predicted

        if target is not None or isinstance(text, tuple):
            raise UserError("a tagger reads one sentence: give no target")
        words = clean_text(one_text(text)).split()
        if not words:
            raise UserError("the text is blank: give one that the model can look at")
        longest = self.model.max_length
        piece, *more = frame_words(self.tokenizer.encode_batch(words), longest, self.model.special_tokens)
        if more:
            raise UserError(f"the sentence has more than the {longest} tokens that the model takes: give a shorter one")
        answers = Predicted(piece.begins, self.config.labels.__getitem__)
        return Framed(piece.ids, len(piece.ids), False), (" ".join(words),), answers

    def _tagged(self, words: list[str], logits_NV: np.ndarray) -> list[TaggedWord]:
        best, scores = logits_NV.argmax(1), probabilities(logits_NV)
        labels = self.config.labels
        return [
            TaggedWord(word, labels[number], float(row[number]))
            for word, number, row in zip(words, best, scores, strict=True)
        ]


def _words(sentence: str | Sequence[str], number: int) -> list[str]:
    """The words of sentence `number`."""
    if isinstance(sentence, str):
        return clean_text(sentence).split()
    name = f"sentence {number} of sentences"
    words = several(sentence, name, "a string or a list of words")
    return [clean_text(one_text(word, f"word {place} of {name}")) for place, word in enumerate(words, 1)]
