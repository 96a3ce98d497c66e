"""What preparation changed, left out or warns about: a file that lists it all, and the counts for the screen."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

REPORT_NAME = "data-report.jsonl"


class DataReport:
    """Writes one JSON object per hit of a rule, and counts the hits; a context manager, which closes the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._hits: defaultdict[str | None, Counter[str]] = defaultdict(Counter)
        # Half a surrogate pair, as in a file name that is not UTF-8, becomes its JSON escape.
        self._file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")

    def __enter__(self) -> "DataReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def hit(self, rule: str, action: str, corpus: str | None = None, **place: object) -> None:
        """List and count something that a rule changed or left out; `corpus` says which of several it is from."""
        self._hits[corpus][rule] += 1
        origin = {"corpus": corpus} if corpus else {}
        self._write({**origin, "rule": rule, "action": action, **place})

    def hits(self, corpus: str | None = None) -> Counter[str]:
        """Rule -> how often it applied so far, in the order of their first hits."""
        return self._hits[corpus]

    def warn(self, text: str) -> None:
        """List a warning, and keep it for the screen."""
        self.warnings.append(text)
        self._write({"warning": text.removeprefix("warning: ")})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write a summary as the last line."""
        self._write({"summary": summary})

    def _write(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
