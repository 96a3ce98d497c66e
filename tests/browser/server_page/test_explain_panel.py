"""The server's page explains a computation, and computes it again when a switch is set."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

import heedful
from chromium import set_screen
from heedful.tasks.explaining import Switches, explained

SENTENCE = "red dog blue sea"
CARD = "[data-step='encoder.1.attention.weights']"


def shown_weights(page) -> list[float]:
    """The weights of the followed token's row."""
    page.run("arguments[0].scrollIntoView({block: 'center'})", page.one(CARD))
    values = page.wait(lambda: page.texts(f"{CARD} .explain-value"))
    return [float(each.replace("−", "-")) for each in values]


@pytest.mark.parametrize("width", [1280, 390])
def test_without_scaling_the_softmax_is_what_python_computes(quiet_page, quick_copy_model: Path, width: int) -> None:
    page = quiet_page
    set_screen(page.driver, width)
    page.open("copy")
    page.type(SENTENCE)
    page.output()
    page.button("Step by step").click()
    page.one("[data-part='encoder.1']")
    page.run("document.querySelector(\"[data-part='encoder.1']\").click()")
    model = heedful.load(quick_copy_model)
    expected = model.trace(SENTENCE)["encoder.1.attention.weights"][0, 0, 0].tolist()
    assert shown_weights(page) == pytest.approx(expected, rel=2e-3, abs=1e-6)

    page.run("arguments[0].open = true", page.one(".explain-switches"))
    page.one(".explain-switches [name=scaling]").click()
    page.wait(lambda: page.one(".explain-note").text not in ("", "Computing …"))
    scores = explained(model, SENTENCE, Switches(scaling=False)).trace["encoder.1.attention.scores"][0, 0, 0]
    unscaled = scores.softmax(-1).tolist()
    page.wait(lambda: shown_weights(page) == pytest.approx(unscaled, rel=2e-3, abs=1e-6))
    assert unscaled != pytest.approx(expected, rel=1e-2)
    assert page.all(f"{CARD} .has-before")

    page.one(".explain-switches [name=scaling]").click()
    page.wait(lambda: page.one(".explain-note").text == "As the model was trained.")
    page.wait(lambda: shown_weights(page) == pytest.approx(expected, rel=2e-3, abs=1e-6))
    assert page.run("return document.documentElement.scrollWidth") <= width

    page.one(".explain-switches [name=mask]").click()
    leak = explained(model, SENTENCE, Switches(mask=False)).to_json()["leak"]
    said = f"Without the mask the future leaks: {100 * leak:.0f} % of the attention"
    page.wait(lambda: page.one(".explain-note").text.startswith(said))


def test_of_two_quick_switches_the_last_one_counts(quiet_page, quick_copy_model: Path) -> None:
    page = quiet_page
    page.open("copy")
    page.type(SENTENCE)
    page.output()
    page.button("Step by step").click()
    page.run("arguments[0].open = true", page.one(".explain-switches"))
    page.run("document.querySelector(\"[data-part='encoder.1']\").click()")
    trained = shown_weights(page)
    # The first answer comes late.
    page.run("""
        const real = window.fetch;
        let asked = 0;
        window.fetch = async (...request) => {
          const late = asked++ === 0;
          const found = await real(...request);
          if (late) {
            await new Promise((done) => setTimeout(done, 1500));
            setTimeout(() => (window.lateCame = true), 300);
          }
          return found;
        };
    """)
    switch = page.one(".explain-switches [name=scaling]")
    page.run("arguments[0].click(); arguments[0].click()", switch)
    page.wait(lambda: page.one(".explain-note").text == "As the model was trained.")
    assert page.one(".explain-switches").get_attribute("aria-busy") is None
    page.wait(lambda: page.run("return window.lateCame"))
    assert page.one(".explain-note").text == "As the model was trained." and shown_weights(page) == trained


def test_a_head_off_and_words_swapped(quiet_page, quick_copy_model: Path) -> None:
    page = quiet_page
    page.open("copy")
    page.type(SENTENCE)
    page.output()
    page.button("Step by step").click()
    page.one("[data-part='encoder.1']")
    page.run("document.querySelector(\"[data-part='encoder.1']\").click()")
    page.run("arguments[0].open = true", page.one(".explain-switches"))
    page.one(".explain-switches [name=head_off]").click()
    page.wait(lambda: page.one(".explain-note").text not in ("", "Computing …"))
    mixed = "[data-step='encoder.1.attention.mixed']"
    page.run("arguments[0].scrollIntoView({block: 'center'})", page.one(mixed))
    page.wait(lambda: "(0, 0, 0" in page.one(f"{mixed} .explain-digits").text)
    page.one(".explain-switches [name=head_off]").click()
    page.wait(lambda: page.one(".explain-note").text == "As the model was trained.")
    page.button("Swap").click()
    page.wait(lambda: "Reads “dog red blue sea”" in page.one(".explain-note").text)
    assert page.texts(".explain-token")[0] == "·dog" or page.texts(".explain-token")[0] == "dog"
    page.one(".explain-switches [name=temperature]").send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: "Computing" not in page.one(".explain-note").text)
