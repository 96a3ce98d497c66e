"""The two passes over a corpus: one decides what is kept, the other turns it into token ids."""

from operator import add
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.progress import ThrottledProgress
from heedful.prepared.split import KEY_DTYPE, Fate, TokenizerSample, content_keys, pair_keys
from heedful.tasks.translation.corpus import ParallelCorpus, RawPairs
from heedful.tasks.translation.pairs import PairsWriter
from heedful.tasks.translation.report import Report
from heedful.text.cleaning import CleanedPairs, Rule, clean_pairs, extreme_ratio, over_long
from heedful.text.corpus_encoder import CorpusEncoder

FILES_CHANGED = "A file of the corpus changed while it was being read: start again."

# The largest number of pairs that are turned into ids at a time, which bounds the memory this takes.
_ENCODED_TOGETHER = 16_384


def first_pass(corpus: ParallelCorpus, keys_path: Path, report: Report, progress: ThrottledProgress) -> TokenizerSample:
    """Clean every pair, write the keys of the clean ones to a file, and sample texts for the tokenizer."""
    sample = TokenizerSample()
    done = 0
    with keys_path.open("wb") as file:
        for block in corpus.blocks():
            cleaned = _clean(block, "train", report)
            sources = [text.encode("utf-8") for text in cleaned.sources]
            targets = [text.encode("utf-8") for text in cleaned.targets]
            keys = np.empty(len(sources), KEY_DTYPE)
            keys["source"] = content_keys(sources)
            keys["pair"] = pair_keys(keys["source"], content_keys(targets))
            characters = map(add, map(len, cleaned.sources), map(len, cleaned.targets))
            keys["characters"] = np.fromiter(characters, np.uint32, len(sources))
            file.write(keys.tobytes())
            sample.add(keys, sources, targets)
            done += len(block.sources)
            progress("reading", done, None)
    progress("reading", done, done)
    return sample


def _clean(block: RawPairs, corpus_name: str, report: Report) -> CleanedPairs:
    cleaned = clean_pairs(block.sources, block.targets, block.missing)
    report.read(corpus_name, len(block.sources))
    for hit in cleaned.hits:
        report.hit(corpus_name, hit.rule, hit.side, block, hit.offset)
    return cleaned


class SecondPass:
    """Reads a corpus again, applies the rules on lengths in subwords, and writes token ids."""

    def __init__(self, encoder: CorpusEncoder, max_length: int, report: Report, progress: ThrottledProgress) -> None:
        self._encoder = encoder
        self._max_length = max_length
        self._report = report
        self._progress = progress

    def encode_train(
        self, corpus: ParallelCorpus, fates: npt.NDArray[np.uint8], writers: dict[Fate, PairsWriter]
    ) -> None:
        """Write each clean pair where its fate sends it; the hits of the first pass are not listed again."""
        done = 0
        for block in corpus.blocks():
            cleaned = clean_pairs(block.sources, block.targets, block.missing)
            block_fates = fates[done : done + len(cleaned.sources)]
            done += len(cleaned.sources)
            if len(block_fates) < len(cleaned.sources):
                raise UserError(FILES_CHANGED)
            for place in np.flatnonzero(block_fates == Fate.DUPLICATE).tolist():
                self._report.hit("train", Rule.DUPLICATE, "both", block, int(cleaned.offsets[place]))
            self._write(block, cleaned, block_fates, "train", writers)
            self._progress("encoding", done, len(fates))
        if done != len(fates):
            raise UserError(FILES_CHANGED)

    def encode_valid(self, corpus: ParallelCorpus, writer: PairsWriter) -> None:
        """Clean and write all pairs of given validation files."""
        done = 0
        for block in corpus.blocks():
            cleaned = _clean(block, "valid", self._report)
            fates = np.full(len(cleaned.sources), Fate.HELD_OUT, np.uint8)
            self._write(block, cleaned, fates, "valid", {Fate.HELD_OUT: writer})
            done += len(block.sources)
            self._progress("encoding validation", done, None)

    def _write(
        self,
        block: RawPairs,
        cleaned: CleanedPairs,
        fates: npt.NDArray[np.uint8],
        corpus_name: str,
        writers: dict[Fate, PairsWriter],
    ) -> None:
        wanted = np.flatnonzero(fates != Fate.DUPLICATE)
        for start in range(0, len(wanted), _ENCODED_TOGETHER):
            places = wanted[start : start + _ENCODED_TOGETHER]
            chosen = places.tolist()
            texts = [cleaned.sources[i] for i in chosen] + [cleaned.targets[i] for i in chosen]
            ids, lengths = self._encoder.encode(texts)
            kept = self._apply_length_rules(block, cleaned.offsets[places], lengths, corpus_name)
            for fate, writer in writers.items():
                writer.write(ids, lengths, kept & (fates[places] == fate))

    def _apply_length_rules(
        self,
        block: RawPairs,
        offsets: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
        corpus_name: str,
    ) -> npt.NDArray[np.bool_]:
        """Which pairs of a block stay; the others are listed."""
        sources, targets = lengths[: len(offsets)], lengths[len(offsets) :]
        kept = np.ones(len(offsets), np.bool_)
        too_long = over_long(sources, targets, self._max_length)
        for place in np.flatnonzero(too_long).tolist():
            sides = [
                side for side, many in (("source", sources), ("target", targets)) if many[place] > self._max_length
            ]
            self._report.hit(
                corpus_name,
                Rule.OVER_LONG,
                "both" if len(sides) > 1 else sides[0],
                block,
                int(offsets[place]),
            )
        kept &= ~too_long
        if corpus_name == "train":
            uneven = kept & extreme_ratio(sources, targets)
            for place in np.flatnonzero(uneven).tolist():
                self._report.hit(corpus_name, Rule.LENGTH_RATIO, "both", block, int(offsets[place]))
            kept &= ~uneven
        return kept
