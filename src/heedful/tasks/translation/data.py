"""From a corpus to prepared data: cleaned, split, encoded once, and reused while its content is the same."""

from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.data_report import DataReport
from heedful.prepared.folder import (
    Expected,
    FactsLayout,
    Ingredients,
    PreparedFolder,
    open_checked,
    prepare_once,
    spool_folder,
)
from heedful.prepared.overlap import count_shared, tell_shared
from heedful.prepared.progress import OnProgress, ThrottledProgress
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.fates import Fate, decide_fates, read_keys
from heedful.tasks.translation.pair_encoder import PairEncoder
from heedful.tasks.translation.pairs import PairsWriter, PreparedPairs
from heedful.tasks.translation.summary import CorpusCounts, DataSummary, PairLog
from heedful.tasks.translation.survey import survey
from heedful.text.corpus_encoder import CorpusEncoder
from heedful.text.row_layout import read_as
from heedful.text.tokenizer import SMALLEST_VOCABULARY, Tokenizer, choose_vocabulary_size

# The keys of all training pairs, which are kept only while data is being prepared.
KEYS = "keys.bin"
# Increased when the rules or the files change, so that older data is prepared again.
FORMAT = 1
# The layout that meta.json had before other kinds of data had one; it is kept so that unfinished runs can continue.
_LAYOUT = FactsLayout("summary", {"format": FORMAT})


@dataclass(frozen=True)
class PrepareOptions:
    """The choices in preparing data; if no vocabulary size is given, it is chosen by the size of the corpus."""

    vocabulary_size: int | None = None
    max_length: int = 256

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and self.vocabulary_size < SMALLEST_VOCABULARY:
            raise UserError(
                f"a vocabulary of {self.vocabulary_size} is too small: the minimum is {SMALLEST_VOCABULARY}"
            )
        if self.max_length < 1:
            raise UserError(f"a maximum length of {self.max_length} leaves no pair: the minimum is 1")


@dataclass(frozen=True)
class PreparedTranslation:
    """Training and validation pairs as token ids, with their tokenizer and what the cleaning did."""

    train: PreparedPairs
    valid: PreparedPairs
    tokenizer: Tokenizer
    summary: DataSummary
    folder: PreparedFolder

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.folder.key

    @property
    def messages(self) -> list[str]:
        """How table files are read, and what was changed or left out, in words."""
        parts = {"training": self.summary.train_files, "validation": self.summary.valid_files}
        messages = [*self.folder.remarks, *self.summary.read_as, *self.summary.warnings]
        messages += [f"{name} files: {counts}" for name, counts in parts.items() if counts]
        if any(counts and counts.hits for counts in parts.values()):
            messages.append(f"every one of these lines is listed in {self.folder.report}")
        return messages


def prepare_translation(
    corpus: ParallelCorpus,
    valid_corpus: ParallelCorpus | None,
    folder: str | Path,
    options: PrepareOptions,
    progress: OnProgress | None = None,
    tokenizer: Tokenizer | None = None,
    expected: Expected | None = None,
) -> PreparedTranslation:
    """Prepare a corpus in a folder, or open what is there if it came from the same content and options.

    Without a validation corpus a part is held out; without a tokenizer one is trained. Next to the prepared data,
    `data-report.jsonl` lists every pair that was changed or left out. Data other than expected is refused.
    """
    if valid_corpus and valid_corpus.reads_standard_input and corpus.reads_standard_input:
        raise UserError("standard input can give the training pairs or the validation pairs, not both")
    folder, throttled = Path(folder), ThrottledProgress(progress)
    prepared = open_checked(folder, expected, _LAYOUT)
    if prepared is None:
        with spool_folder(folder) as spool:
            corpora = [corpus.spooled(spool / "train")]
            if valid_corpus:
                corpora.append(valid_corpus.spooled(spool / "valid"))

            def make(partial: Path, report: DataReport) -> dict[str, Any]:
                return _PairPreparation(corpora, partial, options, report, throttled).make(tokenizer)

            ingredients = _ingredients(corpora, options, tokenizer)
            prepared = prepare_once(folder, ingredients, make, throttled, expected, _LAYOUT)
    tokenizer = tokenizer or Tokenizer.load(prepared.path / "tokenizer.json")
    train, valid = (PreparedPairs(prepared.path / part, tokenizer) for part in ("train", "valid"))
    return PreparedTranslation(train, valid, tokenizer, DataSummary.from_dict(prepared.facts), prepared)


def _ingredients(corpora: list[ParallelCorpus], options: PrepareOptions, tokenizer: Tokenizer | None) -> Ingredients:
    sizes = [[len(group) for group in corpus.groups] for corpus in corpora]
    files = [file for corpus in corpora for file in corpus.files]
    layouts = [layout.choices() for corpus in corpora for layout in corpus.layouts().values()]
    mixed = [corpora[0].groups_per_corpus] if corpora[0].groups_per_corpus else []
    return Ingredients.of_text(files, [FORMAT, sizes, asdict(options), *mixed], tokenizer, layouts)


class _PairPreparation:
    """One preparation of the training corpus, and perhaps a validation corpus after it, in the files' folder."""

    def __init__(
        self,
        corpora: list[ParallelCorpus],
        partial: Path,
        options: PrepareOptions,
        report: DataReport,
        progress: ThrottledProgress,
    ) -> None:
        self.corpora, self.partial, self.options = corpora, partial, options
        self.report, self.progress = report, progress
        self.train_log, self.valid_log = PairLog("train", report), PairLog("valid", report)

    def make(self, tokenizer: Tokenizer | None) -> dict[str, Any]:
        """Read the pairs twice, first to decide what becomes of them and then to encode them; return the summary."""
        fates, tokenizer = self._decide(tokenizer)
        tokenizer.save(self.partial / "tokenizer.json")
        encoder = PairEncoder(CorpusEncoder(tokenizer), self.options.max_length, self.progress)
        with (
            closing(PairsWriter(self.partial / "train", tokenizer.vocabulary_size)) as train,
            closing(PairsWriter(self.partial / "valid", tokenizer.vocabulary_size)) as valid,
        ):
            writers = {Fate.TRAIN: train, Fate.HELD_OUT: valid}
            pairs_per_group = encoder.encode_train(self.corpora[0], fates, writers, self.train_log)
            for valid_corpus in self.corpora[1:]:
                held_out = encoder.encode_valid(valid_corpus, valid, self.valid_log)
                train_keys = read_keys(self.partial / KEYS)["pair"]
                tell_shared(self.report, count_shared(held_out, train_keys), len(held_out), "pairs")
                del train_keys  # the mapped file can now be removed
        (self.partial / KEYS).unlink()
        counts = self.train_log.counts()
        valid_counts = self.valid_log.counts() if len(self.corpora) > 1 else None
        self._require(train.num_pairs, "for training", counts)
        self._require(valid.num_pairs, "for validation", valid_counts or counts)
        layouts = tuple(line for corpus in self.corpora for line in read_as(corpus.layouts(), corpus.wanted))
        sizes = train.num_pairs, valid.num_pairs, train.num_tokens, tokenizer.vocabulary_size
        mixed = self._pairs_per_corpus(pairs_per_group)
        summary = DataSummary(counts, valid_counts, *sizes, layouts, mixed, tuple(self.report.warnings)).to_dict()
        self.report.finish(summary)
        return summary

    def _pairs_per_corpus(self, pairs_per_group: list[int]) -> tuple[int, ...]:
        """The training pairs of each corpus, if several are to be mixed; each must have some."""
        corpus, pairs = self.corpora[0], iter(pairs_per_group)
        found = tuple(sum(islice(pairs, groups)) for groups in corpus.groups_per_corpus)
        if 0 in found:
            name = corpus.groups[sum(corpus.groups_per_corpus[: found.index(0)])][0].shown_name
            raise UserError(
                f"no pair of {name} is left for training, so it cannot be mixed with the others: leave it out, or "
                f"give more of it; {self.report.path} lists each line and its rule"
            )
        return found

    def _decide(self, tokenizer: Tokenizer | None) -> tuple[npt.NDArray[np.uint8], Tokenizer]:
        """The fate of each clean training pair, and the tokenizer, given or learned."""
        keys_path = self.partial / KEYS
        sample = survey(self.corpora[0], keys_path, self.train_log, self.progress)
        counts = self.train_log.counts()
        self._require(counts.pairs_kept, "for training", counts)
        keys = read_keys(keys_path)
        fates, held_out = decide_fates(keys, hold_out=len(self.corpora) == 1)
        if tokenizer is None:
            num_characters = int(keys["characters"][fates == Fate.TRAIN].sum(dtype="int64"))
            self.progress("learning subwords", 0, None)
            size = self.options.vocabulary_size or choose_vocabulary_size(num_characters)
            tokenizer = Tokenizer.train(sample.texts(without_sources=held_out), size)
        return fates, tokenizer

    def _require(self, num_pairs: int, purpose: str, counts: CorpusCounts) -> None:
        if num_pairs == 0:
            reason = "the files are empty" if counts.pairs_read == 0 else str(counts)
            raise UserError(f"no pair is left {purpose}: {reason}; {self.report.path} lists each line and its rule")
