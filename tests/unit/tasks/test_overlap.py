"""Held-out files that repeat what is trained on are told of, and change nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.prepared.overlap import count_shared
from heedful.tasks.labelling.job import ClassifierData, TaggerData
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.masked_modeling.job import MaskedTextData
from heedful.tasks.translation.job import TranslationData

TEXTS = [f"the {colour} dog {n}" for n in range(20) for colour in ("red", "blue", "grey")]
CASES = {
    "translation": (TranslationData, "tsv", [f"{text}\t{text.upper()}\n" for text in TEXTS], "pairs", {}),
    "labels": (ClassifierData, "data", [f"{'ab'[n % 2]}\t{text}\n" for n, text in enumerate(TEXTS)], "texts", {}),
    "tags": (
        TaggerData,
        "data",
        ["".join(f"{word}\t{len(word)}\n" for word in text.split()) + "\n" for text in TEXTS],
        "sentences",
        {},
    ),
    "lines": (TextData, "text", [f"{text}\n" for text in TEXTS], "documents", {"document": "line"}),
    "masked": (MaskedTextData, "text", [f"{text}\n" for text in TEXTS], "documents", {"document": "line"}),
}


def messages(job: type, folder: Path, train: list[str], valid: list[str], field: str, options: dict[str, Any]) -> str:
    folder.mkdir()
    files = {field: folder / "train.txt", f"valid_{field}": folder / "valid.txt"}
    for file, rows in zip(files.values(), (train, valid), strict=True):
        file.write_text("".join(rows), encoding="utf-8")
    data = job(**{name: (str(file),) for name, file in files.items()}, **options)
    data.check()
    prepared = data.prepare(folder / "run", {"vocabulary_size": 300}, lambda *_: None, None)
    again = data.prepare(folder / "run", {"vocabulary_size": 300}, lambda *_: None, None)
    assert list(prepared.messages) == list(again.messages)
    assert not (folder / "run" / "prepared" / "keys.bin").exists()
    return "\n".join(prepared.messages)


@pytest.mark.parametrize("case", CASES)
def test_shared_examples_are_counted(case: str, tmp_path: Path) -> None:
    job, field, rows, what, options = CASES[case]
    told = messages(job, tmp_path / "a", rows[:40], rows[37:], field, options)
    line = f"3 of 23 held-out {what} are also in the training files: the scores on them say little"
    assert line in told.splitlines()
    entries = (tmp_path / "a" / "run" / "data-report.jsonl").read_text(encoding="utf-8").splitlines()
    assert {"warning": line} in map(json.loads, entries)
    assert f"60 of 60 held-out {what} are also" in messages(job, tmp_path / "b", rows, rows, field, options)
    assert "also in the training" not in messages(job, tmp_path / "c", rows[:40], rows[40:], field, options)


def test_a_whole_file_is_one_document(tmp_path: Path) -> None:
    rows = [f"{text}\n" for text in TEXTS]
    told = messages(TextData, tmp_path / "a", rows, rows, "text", {})
    assert "1 of 1 held-out documents is also in the training files: the scores on it say little" in told


def test_repeated_held_out_keys_are_all_counted() -> None:
    keys = np.array([5, 3, 5, 8], np.uint64)
    assert count_shared(keys, np.array([5, 9, 8, 5], np.uint64)) == 3
    assert count_shared(keys, keys[:0]) == count_shared(keys[:0], keys) == 0
