"""What happened to the pairs of a corpus: every hit of a rule in a file, and the counts for the screen."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from heedful.tasks.translation.corpus import RawPairs
from heedful.text.cleaning import KEEPING_RULES, RULES, Rule

REPORT_NAME = "data-report.jsonl"


@dataclass(frozen=True)
class CorpusCounts:
    """How many pairs of a corpus were read, how many were kept, and how many each rule applied to."""

    pairs_read: int
    pairs_kept: int
    hits: Mapping[str, int]

    def __str__(self) -> str:
        hits = [f"{rule} {count:,}" for rule, count in self.hits.items()]
        return f"{self.pairs_read:,} pairs read, {self.pairs_kept:,} kept" + "".join(f", {hit}" for hit in hits)


@dataclass(frozen=True)
class DataSummary:
    """The counts of the training files and of the validation files, and the sizes of the two prepared parts.

    Without validation files, valid_files is None and the valid pairs were held out of the training files.
    """

    train_files: CorpusCounts
    valid_files: CorpusCounts | None
    train_pairs: int
    valid_pairs: int
    train_tokens: int
    vocabulary_size: int
    read_as: tuple[str, ...] = ()  # how table files are laid out, if not as TSV usually is

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "DataSummary":
        """The summary that to_dict gave."""
        counts = {part: values[part] and CorpusCounts(**values[part]) for part in ("train_files", "valid_files")}
        return cls(**{**values, **counts, "read_as": tuple(values["read_as"])})


class Report:
    """Writes one JSON object a hit, and counts; used as a context, so that the file is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._hits = {"train": Counter[Rule](), "valid": Counter[Rule]()}
        self._read = Counter[str]()

    def __enter__(self) -> "Report":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, corpus: str, pairs: int) -> None:
        """Count pairs that were read from the training ("train") or the validation files ("valid")."""
        self._read[corpus] += pairs

    def hit(self, corpus: str, rule: Rule, side: str, block: RawPairs, offset: int) -> None:
        """List and count one pair of a block that a rule applies to."""
        self._hits[corpus][rule] += 1
        entry = {
            "corpus": corpus,
            "rule": rule.value,
            "action": "changed" if rule in KEEPING_RULES else "left out",
            "side": side,
            "files": block.files,
            "line": block.line(offset),
        }
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def counts(self, corpus: str) -> CorpusCounts:
        """The counts so far, the rules in their stated order."""
        hits = self._hits[corpus]
        left_out = sum(count for rule, count in hits.items() if rule not in KEEPING_RULES)
        read = self._read[corpus]
        return CorpusCounts(read, read - left_out, {rule.value: hits[rule] for rule in RULES if hits[rule]})

    def finish(self, summary: DataSummary) -> None:
        """Write the summary as the last line."""
        self._file.write(json.dumps({"summary": summary.to_dict()}, ensure_ascii=False) + "\n")
