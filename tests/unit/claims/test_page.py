"""The page of claims: self-contained, complete, and honest about where a result comes from."""

import re

import pytest

from heedful.claims.chart_svg import draw_chart, shown, ticks
from heedful.claims.evidence import Chart, Evidence, Series, number, series
from heedful.claims.page import claims_page
from heedful.claims.results import Result, Row
from heedful.claims.table import CLAIMS

CHART = Chart(
    "Time <of> a layer", "n", "ms", (series("one & two", [1, 10, 100], [[1.0, 2.0, 3.0], [2.0, 3.0, 5.0]]),), True
)
EVIDENCE = Evidence("five rows", "holds in part", "half of it does", (number("share", [0.5, 0.25], "ms"),), (CHART,))
FULL, QUICK = (Result("x", quick, 12.0, 2, "2", EVIDENCE) for quick in (False, True))
ROWS = [
    Row(CLAIMS["variance"], "measured", QUICK),
    Row(CLAIMS["heads"], "committed", FULL),
    Row(CLAIMS["scorings"], "absent", None),
]


@pytest.fixture(scope="module")
def page() -> str:
    return claims_page(ROWS, True, "heedful claims --quick")


def test_the_page_asks_nothing_of_any_network(page: str) -> None:
    assert not re.search(r"https?:|//\w|<script|@import|url\(", page.split("<style>")[0] + page.split("</style>")[1])
    assert "default-src 'none'" in page


def test_each_claim_has_its_sentence_source_verdict_command_and_code(page: str) -> None:
    for row in ROWS:
        section = page.split(f'id="{row.claim.name}"')[1].split("</section>")[0]
        assert row.claim.sentence in section and row.claim.source in section
        assert f"heedful claims {row.claim.name}" in section
        assert all(reference.partition(":")[0] in section for reference in row.claim.code)


def test_where_a_result_comes_from_is_said(page: str) -> None:
    variance, heads, scorings = (page.split(f'id="{row.claim.name}"')[1].split("</section>")[0] for row in ROWS)
    assert "holds in part</span>" in variance and "committed" not in variance and "(quick)" in variance
    assert "holds in part (committed)" in heads and "not measured on this machine" in heads and "(full)" in heads
    assert "not measured here" in scorings and "no committed result was found" in scorings
    assert "1 of 3 claims were measured on this machine" in page


def test_a_quick_run_says_that_one_seed_has_no_spread(page: str) -> None:
    assert "One seed has no spread" in page and "One seed" not in claims_page(ROWS, False, "heedful claims")


def test_numbers_have_their_spread(page: str) -> None:
    assert "0.375 <small>ms</small>" in page and "0.25 to 0.5" in page


def test_a_chart_is_drawn_with_its_numbers() -> None:
    drawing = draw_chart(CHART)
    assert "Time &lt;of&gt; a layer" in drawing and "one &amp; two" in drawing
    assert drawing.count("<circle") == 3 and drawing.count("<polygon") == 1
    assert "<td>1.5</td>" in drawing


def test_bars_stand_on_zero_and_hang_below_it() -> None:
    chart = Chart("Gain", "", "nats", (Series("gain", (0.0, 1.0), (2.0, -1.0)),), places=("up", "down"))
    up, down = re.findall(r'y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', draw_chart(chart))
    assert float(up[0]) + float(up[1]) == pytest.approx(float(down[0]), abs=0.2)
    assert float(up[1]) == pytest.approx(2 * float(down[1]), abs=0.2)


def test_zero_lies_on_the_end_of_a_logarithmic_axis() -> None:
    chart = Chart("Norm", "n", "norm", (Series("norm", (1.0, 2.0, 3.0), (1.0, 0.1, 0.0)),), y_log=True)
    heights = [float(each) for each in re.findall(r'cy="([\d.]+)"', draw_chart(chart))]
    assert heights[0] < heights[1] < heights[2] <= 300 - 44


def test_axes_have_round_numbers() -> None:
    assert ticks(0.0, 1.0, False) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(0.9, 1100, True) == [1, 10, 100, 1000]
    assert ticks(2, 30, True) == [2, 5, 10, 20]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.12345, "0.1235"),
        (12345.6, "12,346"),
        (1e-7, "1.0e−7"),
        (-2, "−2"),
        (3e9, "3.0e9"),
        (2e12, "2.0e12"),
    ],
)
def test_numbers_are_shown_as_people_read_them(value: float, words: str) -> None:
    assert shown(value) == words
