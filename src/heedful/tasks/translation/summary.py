"""What became of the pairs of a corpus, in numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heedful.prepared.data_report import DataReport
from heedful.tasks.translation.corpus import RawPairs
from heedful.text.cleaning import KEEPING_RULES, RULES, Rule


@dataclass(frozen=True)
class CorpusCounts:
    """How many pairs of a corpus were read, how many were kept, and to how many each rule applied."""

    pairs_read: int
    pairs_kept: int
    hits: Mapping[str, int]

    def __str__(self) -> str:
        hits = [f"{rule} {count:,}" for rule, count in self.hits.items()]
        return f"{self.pairs_read:,} pairs read, {self.pairs_kept:,} kept" + "".join(f", {hit}" for hit in hits)


@dataclass(frozen=True)
class DataSummary:
    """The counts for the training files and the validation files, and the sizes of the two prepared parts.

    Without validation files, valid_files is None and the valid pairs were held out of the training files.
    """

    train_files: CorpusCounts
    valid_files: CorpusCounts | None
    train_pairs: int
    valid_pairs: int
    train_tokens: int
    vocabulary_size: int
    read_as: tuple[str, ...] = ()  # how table files are laid out, if not as TSV usually is
    pairs_per_corpus: tuple[int, ...] = ()  # the training pairs of each corpus, if several are to be mixed
    warnings: tuple[str, ...] = ()  # about how files were read

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; corpora are listed only if several are to be mixed, warnings only if there are any."""
        values = asdict(self)
        for name in ("pairs_per_corpus", "warnings"):
            if not values[name]:
                del values[name]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "DataSummary":
        """The summary that to_dict gave."""
        counts = {part: values[part] and CorpusCounts(**values[part]) for part in ("train_files", "valid_files")}
        tuples = {name: tuple(values.get(name, ())) for name in ("read_as", "pairs_per_corpus", "warnings")}
        return cls(**{**values, **counts, **tuples})


class PairLog:
    """Counts the pairs of the training ("train") or validation files ("valid"), and reports hits."""

    def __init__(self, corpus: str, report: DataReport) -> None:
        self._corpus, self._report = corpus, report
        self._read = 0

    def read(self, pairs: int) -> None:
        """Count pairs that were read."""
        self._read += pairs

    def warn(self, text: str) -> None:
        """Report a warning about how a file was read."""
        self._report.warn(text)

    def hit(self, rule: Rule, side: str, block: RawPairs, offset: int) -> None:
        """Report one pair of a block, to which a rule applies."""
        action = "changed" if rule in KEEPING_RULES else "left out"
        line = block.line(offset)
        self._report.hit(rule.value, action, self._corpus, side=side, files=block.files, line=line)

    def counts(self) -> CorpusCounts:
        """The counts so far, with the rules in their stated order."""
        hits = self._report.hits(self._corpus)
        left_out = sum(count for rule, count in hits.items() if rule not in KEEPING_RULES)
        stated = {rule.value: hits[rule] for rule in RULES if hits[rule]}
        return CorpusCounts(self._read, self._read - left_out, stated)
