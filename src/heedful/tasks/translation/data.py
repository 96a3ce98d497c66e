"""From a corpus to prepared data: cleaned, split, encoded once, and reused while its content is the same."""

import shutil
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from heedful.errors import UserError
from heedful.prepared.folder import (
    complete,
    content_key,
    made_anew,
    read_prepared,
    reading_choices,
    refuse_other_data,
)
from heedful.prepared.progress import Progress, ThrottledProgress
from heedful.prepared.split import Fate, decide_fates, read_keys
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.pairs import PairsWriter, PreparedPairs
from heedful.tasks.translation.report import REPORT_NAME, CorpusCounts, DataSummary, Report
from heedful.tasks.translation.two_passes import FILES_CHANGED, SecondPass, first_pass
from heedful.text.corpus_encoder import CorpusEncoder
from heedful.text.tokenizer import SMALLEST_VOCABULARY, Tokenizer, choose_vocabulary_size

# Goes up when the rules or the files change, so that older prepared data is made anew.
FORMAT = 1


@dataclass(frozen=True)
class PrepareOptions:
    """The choices in preparing data; without a vocabulary size it is chosen from the size of the corpus."""

    vocabulary_size: int | None = None
    max_length: int = 256

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and self.vocabulary_size < SMALLEST_VOCABULARY:
            raise UserError(f"A vocabulary of {self.vocabulary_size} is too small: the least is {SMALLEST_VOCABULARY}.")
        if self.max_length < 1:
            raise UserError(f"A maximum length of {self.max_length} leaves no pair: the least is 1.")


@dataclass(frozen=True)
class PreparedTranslation:
    """Training and validation pairs as token ids, with their tokenizer and what the cleaning did."""

    train: PreparedPairs
    valid: PreparedPairs
    tokenizer: Tokenizer
    report: DataSummary
    key: str
    remark: str | None = None  # why data that was there has been prepared anew, if it was damaged

    @classmethod
    def open(cls, folder: str | Path, tokenizer: Tokenizer | None = None) -> "PreparedTranslation":
        """Open the data that prepare_translation left in a folder, without a look at the corpus."""
        prepared = Path(folder) / "prepared"
        meta, damage = read_prepared(prepared)
        if meta is None or meta.get("format") != FORMAT:
            whole = f" that is whole ({damage})" if damage else ""
            raise UserError(f"{folder} holds no prepared data{whole}: prepare the corpus first.")
        return cls._of(prepared, DataSummary.from_dict(meta["summary"]), meta["key"], tokenizer)

    @classmethod
    def _of(
        cls, prepared: Path, summary: DataSummary, key: str, tokenizer: Tokenizer | None, remark: str | None = None
    ) -> "PreparedTranslation":
        tokenizer = tokenizer or Tokenizer.load(prepared / "tokenizer.json")
        train, valid = (PreparedPairs(prepared / part, tokenizer) for part in ("train", "valid"))
        return cls(train, valid, tokenizer, summary, key, remark)


def prepare_translation(
    corpus: ParallelCorpus,
    valid_corpus: ParallelCorpus | None,
    folder: str | Path,
    options: PrepareOptions,
    progress: Progress | None = None,
    tokenizer: Tokenizer | None = None,
    expected_key: str | None = None,
) -> PreparedTranslation:
    """Prepare a corpus in a folder, or open what lies there if it came from the same content and options.

    Without a validation corpus a part is held out; without a tokenizer one is trained. Next to the prepared
    data, `data-report.jsonl` lists every pair that was changed or left out. With `expected_key`, data of another
    key than that is refused.
    """
    if valid_corpus and valid_corpus.reads_standard_input and corpus.reads_standard_input:
        raise UserError("Standard input can give the training or the validation pairs, not both.")
    folder = Path(folder)
    partial, prepared, spool = (folder / name for name in ("prepared.partial", "prepared", "spooled.partial"))
    _remove(partial, spool)  # what a run that was killed left behind
    partial.mkdir(parents=True)
    try:
        corpora = [corpus.spooled(spool / "train")]
        if valid_corpus:
            corpora.append(valid_corpus.spooled(spool / "valid"))
        throttled = ThrottledProgress(progress)
        before = _file_states(corpora)
        key = _content_key(corpora, options, tokenizer, throttled)
        refuse_other_data(key, expected_key, [file.name for each in corpora for file in each.files], folder)
        meta, damage = read_prepared(prepared)
        if meta is not None and meta["key"] == key and (folder / REPORT_NAME).exists():
            summary = DataSummary.from_dict(meta["summary"])
        else:
            # One set of prepared data a folder: the report beside it always tells of this one.
            _remove(prepared)
            with Report(folder / REPORT_NAME) as report:
                summary = _prepare(corpora, partial, options, report, throttled, tokenizer)
                report.finish(summary)
            if _file_states(corpora) != before:
                raise UserError(FILES_CHANGED)
            complete(partial, {"format": FORMAT, "key": key, "summary": summary.to_dict()})
    finally:
        _remove(partial, spool)
    return PreparedTranslation._of(prepared, summary, key, tokenizer, made_anew(prepared, damage))


def _prepare(
    corpora: list[ParallelCorpus],
    partial: Path,
    options: PrepareOptions,
    report: Report,
    progress: ThrottledProgress,
    tokenizer: Tokenizer | None,
) -> DataSummary:
    """Write the prepared data of the training corpus, and of a validation corpus after it, to a folder."""
    keys_path = partial / "keys.bin"
    sample = first_pass(corpora[0], keys_path, report, progress)
    counts = report.counts("train")
    _require_pairs(counts.pairs_kept, "for training", counts, report)
    keys = read_keys(keys_path)
    fates, held_out = decide_fates(keys, hold_out=len(corpora) == 1)
    if tokenizer is None:
        num_characters = int(keys["characters"][fates == Fate.TRAIN].sum(dtype="int64"))
        progress("learning subwords", 0, None)
        size = options.vocabulary_size or choose_vocabulary_size(num_characters)
        tokenizer = Tokenizer.train(sample.texts(without_sources=held_out), size)
    del keys, sample  # the mapped file can now be removed, and the memory is needed for encoding
    keys_path.unlink()
    tokenizer.save(partial / "tokenizer.json")

    second_pass = SecondPass(CorpusEncoder(tokenizer), options.max_length, report, progress)
    with (
        closing(PairsWriter(partial / "train", tokenizer.vocabulary_size)) as train,
        closing(PairsWriter(partial / "valid", tokenizer.vocabulary_size)) as valid,
    ):
        second_pass.encode_train(corpora[0], fates, {Fate.TRAIN: train, Fate.HELD_OUT: valid})
        for valid_corpus in corpora[1:]:
            second_pass.encode_valid(valid_corpus, valid)
    valid_counts = report.counts("valid") if len(corpora) > 1 else None
    summary = DataSummary(
        report.counts("train"),
        valid_counts,
        train.num_pairs,
        valid.num_pairs,
        train.num_tokens,
        tokenizer.vocabulary_size,
        tuple(
            f"{name} is read as {layout.description(corpus.wanted)}"
            for corpus in corpora
            for name, layout in corpus.layouts().items()
        ),
    )
    _require_pairs(train.num_pairs, "for training", summary.train_files, report)
    _require_pairs(valid.num_pairs, "for validation", valid_counts or summary.train_files, report)
    return summary


def _require_pairs(num_pairs: int, purpose: str, counts: CorpusCounts, report: Report) -> None:
    if num_pairs == 0:
        reason = "the files are empty" if counts.pairs_read == 0 else str(counts)
        raise UserError(f"No pair is left {purpose}: {reason}. {report.path} lists each line and its rule.")


def _content_key(
    corpora: list[ParallelCorpus],
    options: PrepareOptions,
    tokenizer: Tokenizer | None,
    progress: ThrottledProgress,
) -> str:
    """A key that changes with the bytes of the files, with the options, and with a given tokenizer."""
    layout = [[len(group) for group in corpus.groups] for corpus in corpora]
    given = tokenizer and blake2b(tokenizer.to_json().encode("utf-8")).hexdigest()
    files = [file for corpus in corpora for file in corpus.files]
    tables = [table.choices() for corpus in corpora for table in corpus.layouts().values()]
    choices = [FORMAT, layout, asdict(options), given, *reading_choices(files, tables)]
    return content_key(choices, [file.path for file in files], progress)


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _file_states(corpora: list[ParallelCorpus]) -> list[tuple[int, int]]:
    states = [file.path.stat() for corpus in corpora for file in corpus.files]
    return [(state.st_size, state.st_mtime_ns) for state in states]
