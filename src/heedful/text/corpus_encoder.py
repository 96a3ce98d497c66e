"""Token ids of whole corpora: each distinct word is encoded once and then looked up."""

from array import array

import numpy as np
import numpy.typing as npt

from heedful.text.tokenizer import Tokenizer

MAX_CACHED_WORDS = 600_000
MAX_CACHED_TOKENS = 4_000_000

# New words are encoded this many at a time: together they are cheaper than alone, and the threads share them.
_WORDS_TOGETHER = 64


class CorpusEncoder:
    """Encodes blocks of texts exactly as the tokenizer does, many times as fast, in bounded memory.

    The tokenizer never joins characters across a space that stands alone, so the tokens of a text are those of its
    words. Words repeat, and looking one up is much cheaper than encoding it again. New words are encoded in
    parallel threads. With the vocabulary of an imported model, where that may not hold, texts are encoded whole.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._word_by_word = tokenizer.is_word_by_word
        self._starts_word = np.array([tokenizer.starts_with_space(i) for i in range(tokenizer.vocabulary_size)])
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}  # word -> its place in the next two arrays
        self._starts = array("q")
        self._lengths = array("q")
        self._tokens = array("I")

    def encode(self, texts: list[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """The ids of all texts one after the other, and the number of ids of each text."""
        if not texts:
            return np.empty(0, np.uint32), np.empty(0, np.int32)
        if not self._word_by_word:  # the vocabulary of an imported model
            ids = [np.array(each, np.uint32) for each in self._tokenizer.encode_batch(texts)]
            return np.concatenate(ids), np.array([len(each) for each in ids], np.int32)
        words, counts = _split_words(texts)
        rows = self._find(words)
        lengths = np.frombuffer(self._lengths, np.int64)[rows]
        ends = np.cumsum(lengths)
        # For each token of the result: where its word starts in the cache, plus its place in the word.
        shifts = np.repeat(np.frombuffer(self._starts, np.int64)[rows] - (ends - lengths), lengths)
        tokens = np.frombuffer(self._tokens, np.uint32)[shifts + np.arange(len(shifts))]
        first_words = np.cumsum(counts) - counts
        return tokens, np.add.reduceat(lengths, first_words).astype(np.int32)

    def _find(self, words: list[str]) -> npt.NDArray[np.int64]:
        """The place of each word in the cache; words that it does not have are put there."""
        found = list(map(self._rows.get, words))
        missing = [place for place, row in enumerate(found) if row is None] if None in found else []
        new = {words[place] for place in missing}
        if len(self._rows) + len(new) > MAX_CACHED_WORDS or len(self._tokens) > MAX_CACHED_TOKENS:
            self._forget()
            missing = list(range(len(words)))
            new = set(words)
        self._learn(new)
        for place in missing:
            found[place] = self._rows[words[place]]
        return np.array(found, np.int64)

    def _learn(self, new: set[str]) -> None:
        whole_texts = [word for word in new if not word or " " in word]
        if whole_texts:
            new.difference_update(whole_texts)
            for word, ids in zip(whole_texts, self._tokenizer.encode_batch(whole_texts), strict=True):
                self._remember([word], np.array(ids, np.uint32), np.zeros(1, np.int64))
        ordered = list(new)
        lines = [" ".join(ordered[i : i + _WORDS_TOGETHER]) for i in range(0, len(ordered), _WORDS_TOGETHER)]
        encoded = [np.array(ids, np.uint32) for ids in self._tokenizer.encode_batch(lines)]
        if encoded:
            tokens = np.concatenate(encoded)
            # Each word begins with its space, and holds no other.
            self._remember(ordered, tokens, np.flatnonzero(self._starts_word[tokens]))

    def _remember(self, words: list[str], tokens: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64]) -> None:
        assert len(words) == len(starts), (len(words), len(starts))
        self._rows.update(zip(words, range(len(self._rows), len(self._rows) + len(words)), strict=True))
        self._lengths.frombytes(np.diff(starts, append=len(tokens)).astype(np.int64).tobytes())
        self._starts.frombytes((starts + len(self._tokens)).tobytes())
        self._tokens.frombytes(tokens.tobytes())


def _split_words(texts: list[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The words of all texts and how many each has; a text with neighbouring or outer spaces is one word."""
    joined = " ".join(texts)
    if not ("  " in joined or joined.startswith(" ") or joined.endswith(" ")):
        counts = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        return joined.split(" "), counts
    split = [[text] if "  " in f" {text} " else text.split(" ") for text in texts]
    words = [word for text_words in split for word in text_words]
    return words, np.fromiter(map(len, split), np.int64, len(split))
