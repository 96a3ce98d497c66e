"""Every claim of the table runs from its beginning to its end, and declares what the page needs."""

import importlib
import json
import re
from pathlib import Path

import pytest

from heedful.claims.budgets import BUDGETS, FULL_SECONDS, QUICK_SECONDS
from heedful.claims.claim import find_code
from heedful.claims.page import claims_page
from heedful.claims.results import Result, Row, run_document
from heedful.claims.table import CLAIMS
from heedful.claims.workbench import workbench

ROOT = Path(__file__).parents[3]


def test_there_is_a_budget_for_each_and_they_keep_within_the_whole() -> None:
    assert BUDGETS.keys() == CLAIMS.keys()
    assert sum(quick or 0 for quick, _ in BUDGETS.values()) <= QUICK_SECONDS
    assert sum(full for _, full in BUDGETS.values()) <= FULL_SECONDS


@pytest.mark.parametrize("name", CLAIMS)
def test_what_a_claim_names_is_there(name: str) -> None:
    claim = CLAIMS[name]
    assert claim.name == name and claim.sentence.endswith(".") and claim.method.endswith(".")
    for reference in claim.code:
        place = find_code(reference)
        assert place.first < place.last and reference.rpartition(":")[2].split(".")[-1] in place.text


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_runs_to_its_end(name: str, tmp_path: Path, short_courses: None) -> None:
    claim, told = CLAIMS[name], []
    evidence = importlib.import_module(claim.module).measure(workbench(claim, tmp_path, True, told.append))
    assert evidence.numbers and evidence.charts and evidence.because
    row = Row(claim, "measured", Result("", True, 1.0, 2, "2", evidence))
    json.dumps(run_document([row], True, claim.command), allow_nan=False)
    page = claims_page([row], True, claim.command)
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == len(evidence.charts) and not any("nan" in each for each in drawings)


def test_the_documentation_has_every_claim() -> None:
    text = " ".join((ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split())
    paper = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    for claim in CLAIMS.values():
        assert f"### {claim.name} **{claim.title}.** {claim.sentence} ({claim.source}.)" in text
    assert set(re.findall(r"\(claims\.md#([a-z-]+)\)", paper)) == CLAIMS.keys()
