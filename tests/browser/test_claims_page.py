"""The page of claims in a real browser: nothing overflows, nothing is asked of another host, all can be opened."""

import pytest

from heedful.claims.evidence import Chart, Evidence, number, series
from heedful.claims.page import claims_page
from heedful.claims.results import Result, Row
from heedful.claims.table import CLAIMS

LINE = Chart("Time of a layer", "n", "ms", (series("one", [1, 10, 100], [[1.0, 2.0, 3.0], [2.0, 3.0, 5.0]]),), True)
BARS = Chart("Loss", "", "nats", (series("loss", range(24), [range(1, 25)]),), places=tuple(f"e{n}" for n in range(24)))
EVIDENCE = Evidence(
    "five rows", "holds in part", "half of it does", (number("share", [0.5, 0.25], "ms"),), (LINE, BARS)
)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_all_claims_on_a_page(new_browser, browser_log, open_page, width: int, scheme: str) -> None:
    result = Result("x", True, 12.0, 2, "2", EVIDENCE)
    rows = [Row(claim, "measured", result) for claim in CLAIMS.values()]
    new_browser(width, 900, scheme)
    browser = open_page(claims_page(rows, True, "heedful claims --quick"))
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script("return document.querySelectorAll('section.claim svg').length") == 2 * len(CLAIMS)
    # The colours of the style sheet are in force: the policy lets it through.
    dot = "return getComputedStyle(document.querySelector('.dot')).fill"
    assert browser.execute_script(dot) not in ("rgb(0, 0, 0)", "none")
    browser.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser_log.hosts() == set()
    assert browser_log.messages == []
