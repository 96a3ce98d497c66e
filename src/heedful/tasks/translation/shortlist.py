"""Learning from aligned text which target tokens go with a source token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.text.cleaning import clean_text
from heedful.text.shortlist import Shortlist
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer

# How many tokens every sentence may use, and how many one source token adds.
FREQUENT, PER_TOKEN = 2048, 16
# The most pairs to learn from: more would add little.
MOST_PAIRS = 500_000
# How many pairs are counted at a time.
BLOCK = 10_000

Ids = list[list[int]]
Array = NDArray[np.int64]


def learn_shortlist(corpus: ParallelCorpus, tokenizer: Tokenizer, vocabulary: int) -> tuple[Shortlist, float]:
    """A shortlist, and the share of the target tokens in the last block that it offers to their own sentences."""
    blocks = list(_encoded(corpus, tokenizer))
    if not blocks:
        raise UserError("there are no pairs of lines with text on both sides")
    special = tokenizer.special_tokens
    counts_V = np.zeros(vocabulary, np.int64)
    for _, targets in blocks:
        counts_V += np.bincount(np.concatenate([np.array(each, np.int64) for each in targets]), minlength=vocabulary)
    frequent_F = _frequent(counts_V, special)
    shortlist = Shortlist(frequent_F, *_likely(blocks, frequent_F, vocabulary))
    return shortlist, coverage(shortlist, blocks[-1])


def coverage(shortlist: Shortlist, pairs: tuple[Ids, Ids]) -> float:
    """The share of target tokens that are offered to their own sentences."""
    frequent = set(shortlist.frequent_F.tolist())
    found = total = 0
    for source, target in zip(*pairs, strict=True):
        offered = frequent | set(shortlist.own_tokens(np.array(source, np.int64)).tolist())
        found += sum(token in offered for token in target)
        total += len(target)
    return found / total


def _encoded(corpus: ParallelCorpus, tokenizer: Tokenizer) -> Iterator[tuple[Ids, Ids]]:
    """Pairs of lines with text on both sides, as ids, in blocks."""
    left = MOST_PAIRS
    for sources, targets in _texts(corpus):
        if left <= 0:
            return
        pairs = [(s, t) for s, t in zip(sources, targets, strict=True) if s and t][:left]
        left -= len(pairs)
        if pairs:
            source, target = (tokenizer.encode_batch(list(side)) for side in zip(*pairs, strict=True))
            yield source, target


def _texts(corpus: ParallelCorpus) -> Iterator[tuple[list[str], list[str]]]:
    sources: list[str] = []
    targets: list[str] = []
    for block in corpus.blocks():
        sources += [clean_text(line.decode("utf-8", "replace")) for line in block.sources]
        targets += [clean_text(line.decode("utf-8", "replace")) for line in block.targets]
        while len(sources) >= BLOCK:
            yield sources[:BLOCK], targets[:BLOCK]
            sources, targets = sources[BLOCK:], targets[BLOCK:]
    yield sources, targets


def _frequent(counts_V: Array, special: SpecialTokens) -> Array:
    """The end token, then the tokens that occur most often."""
    counts_V = counts_V.copy()
    counts_V[sorted(special.ids)] = 0
    order = np.argsort(-counts_V, kind="stable")[: FREQUENT - 1]
    return np.concatenate([[special.end], order[counts_V[order] > 0]]).astype(np.int64)


def _likely(blocks: Iterable[tuple[Ids, Ids]], frequent_F: Array, vocabulary: int) -> tuple[Array, NDArray[np.float32]]:
    """For each source token, the rare target tokens that occur with it, by the strength of the link.

    With c(s) sentences that contain s, and c(s, t) that contain both, that is c(s, t) ** 2 / (c(s) c(t)).
    """
    rare_V = np.ones(vocabulary, bool)
    rare_V[frequent_F] = False
    sources_V, targets_V = np.zeros(vocabulary, np.int64), np.zeros(vocabulary, np.int64)
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for source, target in blocks:
        source_rows, source_tokens = _distinct(source, vocabulary)
        target_rows, target_tokens = _distinct(target, vocabulary)
        sources_V += np.bincount(source_tokens, minlength=vocabulary)
        targets_V += np.bincount(target_tokens, minlength=vocabulary)
        rare = rare_V[target_tokens]
        found = _together(source_rows, source_tokens, target_rows[rare], target_tokens[rare], vocabulary)
        keys, counts = _added(keys, counts, *np.unique(found, return_counts=True))
    source_tokens, target_tokens = keys // vocabulary, keys % vocabulary
    strengths = counts.astype(np.float64) ** 2 / (sources_V[source_tokens] * targets_V[target_tokens])
    order = np.lexsort((target_tokens, -strengths, source_tokens))
    source_tokens, target_tokens, strengths = source_tokens[order], target_tokens[order], strengths[order]
    ranks = np.arange(len(order)) - np.searchsorted(source_tokens, source_tokens)
    kept = ranks < PER_TOKEN
    likely_VE = np.zeros((vocabulary, PER_TOKEN), np.int64)
    strengths_VE = np.zeros((vocabulary, PER_TOKEN), np.float32)
    likely_VE[source_tokens[kept], ranks[kept]] = target_tokens[kept]
    strengths_VE[source_tokens[kept], ranks[kept]] = strengths[kept]
    return likely_VE, strengths_VE


def _distinct(texts: Ids, vocabulary: int) -> tuple[Array, Array]:
    """Each text's number paired with each of its distinct tokens, text by text."""
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    tokens = np.concatenate([np.array(each, np.int64) for each in texts])
    keys = np.unique(rows * vocabulary + tokens)
    return keys // vocabulary, keys % vocabulary


def _together(
    source_rows: Array, source_tokens: Array, target_rows: Array, target_tokens: Array, vocabulary: int
) -> Array:
    """A key for every source token and target token in the same pair."""
    firsts, ends = np.searchsorted(source_rows, target_rows), np.searchsorted(source_rows, target_rows, "right")
    sizes = ends - firsts
    starts = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
    return source_tokens[starts + np.arange(sizes.sum())] * vocabulary + np.repeat(target_tokens, sizes)


def _added(keys: Array, counts: Array, more_keys: Array, more_counts: Array) -> tuple[Array, Array]:
    """The sums of both counts, by key."""
    joined, places = np.unique(np.concatenate([keys, more_keys]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([counts, more_counts]), len(joined))
    return joined, sums.astype(np.int64)
