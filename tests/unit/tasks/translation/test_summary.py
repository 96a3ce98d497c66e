import json
from pathlib import Path

from heedful.prepared.data_report import DataReport
from heedful.tasks.translation.corpus import RawPairs
from heedful.tasks.translation.summary import CorpusCounts, DataSummary, PairLog
from heedful.text.cleaning import Rule

BLOCK = RawPairs(("a.en", "a.de"), 101, [b"x"] * 7, [b"y"] * 7)


def test_hits_are_listed_with_their_line_and_counted(tmp_path: Path) -> None:
    with DataReport(tmp_path / "report") as report:
        train_log, valid_log = PairLog("train", report), PairLog("valid", report)
        train_log.read(7)
        train_log.read(4)
        valid_log.read(3)
        train_log.hit(Rule.DUPLICATE, "both", BLOCK, 2)
        train_log.hit(Rule.CONTROL_CHARACTERS, "source", BLOCK, 5)
        train_log.hit(Rule.BLANK, "target", BLOCK, 6)
        valid_log.hit(Rule.BLANK, "target", BLOCK, 0)
        train, valid = train_log.counts(), valid_log.counts()
        report.finish(DataSummary(train, valid, 9, 2, 1234, 567).to_dict())
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
