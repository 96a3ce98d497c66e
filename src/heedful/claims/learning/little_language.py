"""A little language to be translated into another: generated on the spot, with known alignments.

A sentence says who does what to whom: an article, perhaps an adjective, a noun, a verb, and so on, a comma between
clauses and a full stop at the end. In the other language the verb comes last in its clause, an adjective comes after
its noun, and an article has the form of its noun's class, which comes later in the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# Ids of both languages: 0 pads, 1 starts, 2 ends; then the delimiters, then the words.
PADDING, START, END, COMMA, STOP = range(5)
ARTICLES, ADJECTIVES, NOUNS, VERBS = 3, 8, 20, 12
CLASSES = 3
FIRST_ARTICLE = STOP + 1
FIRST_ADJECTIVE = FIRST_ARTICLE + ARTICLES
FIRST_NOUN = FIRST_ADJECTIVE + ADJECTIVES
FIRST_VERB = FIRST_NOUN + NOUNS
FIRST_TRANSLATED = FIRST_VERB + VERBS
# In the other language there is an article for each article and class; adjectives, nouns and verbs map one to one.
TRANSLATED_ARTICLES = ARTICLES * CLASSES
VOCABULARY = FIRST_TRANSLATED + TRANSLATED_ARTICLES + ADJECTIVES + NOUNS + VERBS


@dataclass(frozen=True)
class Sentence:
    """A sentence, its translation, and, for each token of the translation, the source place that it comes from."""

    source: list[int]
    target: list[int]
    alignment: list[int]


@dataclass(frozen=True)
class PairBatch:
    """Sources with their end tokens, what the decoder reads, what it should output, source lengths, and alignments."""

    source_BS: Tensor
    input_BT: Tensor
    output_BT: Tensor
    source_lengths_B: Tensor
    alignment_BT: Tensor

    @property
    def real_BT(self) -> Tensor:
        """True where the output is not padding."""
        return self.output_BT != PADDING


def draw_sentence(random: np.random.Generator, most_clauses: int = 3) -> Sentence:
    """A sentence of one to `most_clauses` clauses."""
    source: list[int] = []
    target: list[int] = []
    alignment: list[int] = []
    clauses = int(random.integers(1, most_clauses + 1))
    for clause in range(clauses):
        verb = int(random.integers(VERBS))
        for part in range(2):
            phrase, translated, places = _noun_phrase(random)
            alignment += [len(source) + place for place in places]
            source += phrase
            target += translated
            if part == 0:
                verb_place = len(source)
                source.append(FIRST_VERB + verb)
        target.append(_translated(FIRST_VERB + verb))
        alignment.append(verb_place)
        mark = STOP if clause == clauses - 1 else COMMA
        target.append(mark)
        alignment.append(len(source))
        source.append(mark)
    return Sentence(source, target, alignment)


def _noun_phrase(random: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
    """An article, sometimes an adjective, and a noun; their translation; and where each of its words comes from."""
    article, noun = int(random.integers(ARTICLES)), int(random.integers(NOUNS))
    translated_article = FIRST_TRANSLATED + article * CLASSES + noun % CLASSES
    if random.random() < 0.5:
        adjective = FIRST_ADJECTIVE + int(random.integers(ADJECTIVES))
        words = [FIRST_ARTICLE + article, adjective, FIRST_NOUN + noun]
        return words, [translated_article, _translated(words[2]), _translated(words[1])], [0, 2, 1]
    words = [FIRST_ARTICLE + article, FIRST_NOUN + noun]
    return words, [translated_article, _translated(words[1])], [0, 1]


def _translated(word: int) -> int:
    """The word of the other language for an adjective, a noun or a verb."""
    return FIRST_TRANSLATED + TRANSLATED_ARTICLES + word - FIRST_ADJECTIVE


def draw_sentences(count: int, seed: tuple[int, ...], most_clauses: int = 3) -> list[Sentence]:
    """`count` sentences from a seed."""
    random = np.random.default_rng(seed)
    return [draw_sentence(random, most_clauses) for _ in range(count)]


def batch_of(sentences: list[Sentence]) -> PairBatch:
    """Sentences as padded tensors."""
    sources = [[*each.source, END] for each in sentences]
    return PairBatch(
        _padded(sources),
        _padded([[START, *each.target] for each in sentences]),
        _padded([[*each.target, END] for each in sentences]),
        torch.tensor([len(each) for each in sources]),
        _padded([[*each.alignment, len(each.source)] for each in sentences]),
    )


def _padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PADDING] * (longest - len(row)) for row in rows])
