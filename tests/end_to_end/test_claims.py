"""`heedful claims` as users run it: a page, its JSON, what is kept, and mistakes."""

import json
import math
from pathlib import Path

import pytest


def test_a_quick_claim_becomes_a_page(run, tmp_path: Path) -> None:
    page = tmp_path / "found.html"
    first = run("claims", "complexity", "heads", "--quick", "--out", page)
    assert b"complexity" in first.stderr and b"written to" in first.stderr
    document = json.loads(page.with_suffix(".json").read_text())
    assert document["quick"] and document["command"] == "heedful claims complexity heads --quick"
    found = {each["name"]: each for each in document["claims"]}
    assert found.keys() == {"complexity", "heads"}
    assert found["complexity"]["origin"] == "measured" and found["heads"]["origin"] in ("committed", "absent")
    numbers = {each["name"]: each for each in found["complexity"]["result"]["evidence"]["numbers"]}
    # What a busy machine measures is not for a test; fits to times that are known have tests of their own.
    assert math.isfinite(numbers["exponent of n, LSTM (Table 1: 1)"]["mean"])
    assert "Operations per layer" in page.read_text()
    again = run("claims", "complexity", "--quick", "--out", page)
    assert b"measured before" in again.stderr
    assert [each["name"] for each in json.loads(page.with_suffix(".json").read_text())["claims"]] == ["complexity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scalings"], b"heedful: there is no claim 'scalings': did you mean 'scorings'?\n"),
        (["variance", "--out", "page.txt"], b"heedful: --out is 'page.txt': a page is a file that ends in .html\n"),
        (
            ["variance", "--out", "no-such-folder/claims.html"],
            b"heedful: --out is 'no-such-folder/claims.html', but there is no folder no-such-folder: make it, or "
            b"choose another place\n",
        ),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(run, arguments: list[str], message: bytes) -> None:
    assert run("claims", *arguments, code=2).stderr == message
