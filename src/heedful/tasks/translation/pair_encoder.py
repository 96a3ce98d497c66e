"""The second pass over a corpus, which turns the pairs that are kept into token ids."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.batches import Lengths
from heedful.prepared.folder import FILES_CHANGED
from heedful.prepared.held_out import Keys
from heedful.prepared.progress import ThrottledProgress
from heedful.tasks.translation.corpus import ParallelCorpus, RawPairs
from heedful.tasks.translation.fates import Fate, keys_of_pairs
from heedful.tasks.translation.pairs import PairsWriter
from heedful.tasks.translation.summary import PairLog
from heedful.tasks.translation.survey import clean_and_log
from heedful.text.cleaning import CleanedPairs, Rule, clean_pairs, extreme_ratio, over_long
from heedful.text.corpus_encoder import CorpusEncoder

# The most pairs that are turned into ids at a time; this bounds the memory that it takes.
_ENCODED_TOGETHER = 16_384


class PairEncoder:
    """Reads a corpus again, applies the rules on lengths in subwords, and writes token ids."""

    def __init__(self, encoder: CorpusEncoder, max_length: int, progress: ThrottledProgress) -> None:
        self._encoder = encoder
        self._max_length = max_length
        self._progress = progress

    def encode_train(
        self, corpus: ParallelCorpus, fates: npt.NDArray[np.uint8], writers: dict[Fate, PairsWriter], log: PairLog
    ) -> list[int]:
        """Write each clean pair where its fate sends it; what the survey logged is not logged again.

        Returns the number of training pairs of each group of files.
        """
        done = 0
        counts = [0] * len(corpus.groups)
        for block in corpus.blocks():
            cleaned = clean_pairs(block.sources, block.targets, block.missing, block.faults)
            block_fates = fates[done : done + len(cleaned.sources)]
            done += len(cleaned.sources)
            if len(block_fates) < len(cleaned.sources):
                raise UserError(FILES_CHANGED)
            for place in np.flatnonzero(block_fates == Fate.DUPLICATE).tolist():
                log.hit(Rule.DUPLICATE, "both", block, int(cleaned.offsets[place]))
            for chosen, lengths, ids in self._encoded(cleaned, np.flatnonzero(block_fates != Fate.DUPLICATE)):
                kept = self._short_enough(block, cleaned.offsets[chosen], lengths, log)
                kept &= self._even_enough(block, cleaned.offsets[chosen], lengths, kept, log)
                for fate, writer in writers.items():
                    writer.write(ids, lengths, kept & (block_fates[chosen] == fate))
                counts[block.group] += int((kept & (block_fates[chosen] == Fate.TRAIN)).sum())
            self._progress("encoding", done, len(fates))
        if done != len(fates):
            raise UserError(FILES_CHANGED)
        return counts

    def encode_valid(self, corpus: ParallelCorpus, writer: PairsWriter, log: PairLog) -> Keys:
        """Clean and write all pairs of given validation files, repeated and uneven ones included; return their keys."""
        done = 0
        keys = [np.empty(0, np.uint64)]
        for block in corpus.blocks(log.warn):
            cleaned = clean_and_log(block, log)
            for chosen, lengths, ids in self._encoded(cleaned, np.arange(len(cleaned.sources))):
                kept = self._short_enough(block, cleaned.offsets[chosen], lengths, log)
                writer.write(ids, lengths, kept)
                places = chosen[kept].tolist()
                keys.append(keys_of_pairs(*([side[i] for i in places] for side in (cleaned.sources, cleaned.targets))))
            done += len(block.sources)
            self._progress("encoding validation", done, None)
        return np.concatenate(keys)

    def _encoded(
        self, cleaned: CleanedPairs, wanted: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], Lengths, npt.NDArray[np.uint32]]]:
        """Some of the pairs, by their places, with the lengths and the ids of all sources and then all targets."""
        for start in range(0, len(wanted), _ENCODED_TOGETHER):
            places = wanted[start : start + _ENCODED_TOGETHER]
            chosen = places.tolist()
            texts = [cleaned.sources[i] for i in chosen] + [cleaned.targets[i] for i in chosen]
            ids, lengths = self._encoder.encode(texts)
            yield places, lengths, ids

    def _short_enough(
        self, block: RawPairs, offsets: npt.NDArray[np.int64], lengths: Lengths, log: PairLog
    ) -> npt.NDArray[np.bool_]:
        """Which pairs are not too long on either side; the others are logged."""
        sources, targets = lengths[: len(offsets)], lengths[len(offsets) :]
        too_long = over_long(sources, targets, self._max_length)
        for place in np.flatnonzero(too_long).tolist():
            sides = [
                side for side, many in (("source", sources), ("target", targets)) if many[place] > self._max_length
            ]
            log.hit(Rule.OVER_LONG, "both" if len(sides) > 1 else sides[0], block, int(offsets[place]))
        return ~too_long

    def _even_enough(
        self,
        block: RawPairs,
        offsets: npt.NDArray[np.int64],
        lengths: Lengths,
        kept: npt.NDArray[np.bool_],
        log: PairLog,
    ) -> npt.NDArray[np.bool_]:
        """Which pairs are not far longer on one side than on the other; the others are logged, if kept so far."""
        uneven = kept & extreme_ratio(lengths[: len(offsets)], lengths[len(offsets) :])
        for place in np.flatnonzero(uneven).tolist():
            log.hit(Rule.LENGTH_RATIO, "both", block, int(offsets[place]))
        return ~uneven
