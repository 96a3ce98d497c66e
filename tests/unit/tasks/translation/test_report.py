import json
from pathlib import Path

from heedful.tasks.translation.corpus import RawPairs
from heedful.tasks.translation.report import CorpusCounts, DataSummary, Report
from heedful.text.cleaning import Rule

BLOCK = RawPairs(("a.en", "a.de"), 101, [b"x"] * 7, [b"y"] * 7)


def test_hits_are_listed_with_their_line_and_counted(tmp_path: Path) -> None:
    with Report(tmp_path / "report") as report:
        report.read("train", 7)
        report.read("train", 4)
        report.read("valid", 3)
        report.hit("train", Rule.DUPLICATE, "both", BLOCK, 2)
        report.hit("train", Rule.CONTROL_CHARACTERS, "source", BLOCK, 5)
        report.hit("train", Rule.BLANK, "target", BLOCK, 6)
        report.hit("valid", Rule.BLANK, "target", BLOCK, 0)
        train, valid = report.counts("train"), report.counts("valid")
        report.finish(DataSummary(train, valid, 9, 2, 1234, 567))
    # Changed pairs are kept; the rules come in the order in which they are stated.
    assert train == CorpusCounts(11, 9, {"control characters": 1, "blank": 1, "duplicate": 1})
    assert str(train) == "11 pairs read, 9 kept, control characters 1, blank 1, duplicate 1"
    assert valid == CorpusCounts(3, 2, {"blank": 1})
    entries = [json.loads(line) for line in (tmp_path / "report").read_text(encoding="utf-8").splitlines()]
    assert entries[0] == {
        "corpus": "train",
        "rule": "duplicate",
        "action": "left out",
        "side": "both",
        "files": ["a.en", "a.de"],
        "line": 103,
    }
    assert [(entry["action"], entry["line"]) for entry in entries[1:4]] == [
        ("changed", 106),
        ("left out", 107),
        ("left out", 101),
    ]
    assert DataSummary.from_dict(entries[4]["summary"]) == DataSummary(train, valid, 9, 2, 1234, 567)


def test_a_summary_without_validation_files_survives_json() -> None:
    summary = DataSummary(CorpusCounts(5, 5, {}), None, 4, 1, 99, 400)
    assert DataSummary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary
