"""Models, prepared data and unfinished runs that an earlier heedful wrote are used and continued as its own would be.

Each archive holds a job's files, a finished model folder, a run that was killed after a few steps, and what the heedful
that wrote them made of both. Numbers may differ in their last digits between processors, and not by more.
"""

import json
import re
import tarfile
from pathlib import Path

import pytest

ARCHIVES = sorted((Path(__file__).parents[1] / "fixtures" / "written_before").glob("*.tar.xz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_unfinished_run_of_before_is_continued(folder: Path, run) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    prepared = {path: path.stat().st_mtime_ns for path in (folder / "unfinished/run/prepared").rglob("*")}
    assert b"continuing after step 3" in run(*expected["train"], "--out", "unfinished").stderr
    rows = [json.loads(line) for line in (folder / "unfinished/run/metrics.jsonl").read_text().splitlines()]
    assert [[row["kind"], row["step"]] for row in rows] == [row[:2] for row in expected["losses"]]
    assert [row["loss"] for row in rows] == pytest.approx([row[2] for row in expected["losses"]], rel=1e-5)
    assert {path: path.stat().st_mtime_ns for path in prepared} == prepared  # and not made again


def test_a_model_of_before_gives_the_same_answers(folder: Path, run) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    verb, *arguments = expected["use"]
    found = run(verb, "finished", *arguments).stdout.decode()
    number = re.compile(r"0\.\d{6}")
    assert number.sub("", found) == number.sub("", expected["output"])
    numbers, others = (list(map(float, number.findall(text))) for text in (found, expected["output"]))
    assert numbers == pytest.approx(others, abs=2e-6)
