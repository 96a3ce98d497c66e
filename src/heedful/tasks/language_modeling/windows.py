"""Windows of equal length that cover a text, or several in given proportions, in a new random order each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import UserError
from heedful.prepared.batches import EvenBatches
from heedful.prepared.mixture import Mixture
from heedful.tasks.mixed_corpora import MixedCorpora
from heedful.tasks.task import Indices, LearningSettings


def shuffled_windows(num_tokens: int, length: int, settings: LearningSettings, epoch: int) -> EvenBatches:
    """The starts of windows that cover a text, from a different place in each epoch, in random order, by batch."""
    random = np.random.PCG64([settings.seed, epoch])
    spare = (num_tokens - 1) % length
    room = min(length, spare + length * ((num_tokens - 1) // length - 1) + 1)
    first = int(random.random_raw() % room)
    starts = np.arange(first, num_tokens - length, length)
    starts = starts[np.argsort(random.random_raw(len(starts)), kind="stable")]
    return EvenBatches(starts, max(1, settings.tokens_per_batch // length))


@dataclass(frozen=True)
class MixedTexts:
    """Texts stored one after the other, each up to one of `ends`, which are to be mixed by windows."""

    corpora: MixedCorpora
    ends: tuple[int, ...]

    @property
    def begins(self) -> tuple[int, ...]:
        """Where each text begins: with the end token of the document before it."""
        return (0, *(end - 1 for end in self.ends[:-1]))

    @property
    def sizes(self) -> list[int]:
        """The tokens of each text."""
        return [end - begin for begin, end in zip(self.begins, self.ends, strict=True)]

    def counts(self, length: int) -> list[int]:
        """The number of windows of each text in one pass, wherever the first of them begins."""
        for name, size in zip(self.corpora.names, self.sizes, strict=True):
            if size <= length:
                raise UserError(
                    f"{name} has {size:,} tokens to train on, and a window of the model has {length:,}: give more of "
                    "it, set a smaller model.max_length, or leave it out of the mixture"
                )
        return [max(1, (size - 1) // length - 1) for size in self.sizes]

    def of_tokens(self) -> Mixture:
        """How often an epoch has each token, on average."""
        return self.corpora.mixture(self.sizes)

    def shuffled_windows(self, length: int, settings: LearningSettings, epoch: int) -> EvenBatches:
        """The starts of windows in the proportions of the mixture, from different places in each epoch, by batch."""
        random = np.random.PCG64([settings.seed, epoch])
        counts = self.counts(length)
        texts: list[Indices] = []
        for begin, end, count in zip(self.begins, self.ends, counts, strict=True):
            first = int(random.random_raw() % (end - begin - count * length))
            texts.append(begin + first + length * np.arange(count))
        starts = np.repeat(np.concatenate(texts), self.corpora.mixture(counts, settings.seed).times(epoch))
        starts = starts[np.argsort(random.random_raw(len(starts)), kind="stable")]
        return EvenBatches(starts, max(1, settings.tokens_per_batch // length))


def windows_of_epoch(
    num_tokens: int, mixed: MixedTexts | None, length: int, settings: LearningSettings, epoch: int
) -> Sequence[Indices]:
    """The batches of an epoch, of one text or of several that are mixed."""
    if mixed:
        return mixed.shuffled_windows(length, settings, epoch)
    return shuffled_windows(num_tokens, length, settings, epoch)
