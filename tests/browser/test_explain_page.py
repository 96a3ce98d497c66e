"""The page that explains a computation, in a browser: what it shows is what `trace` gives, by pointer and keyboard."""

import time
from collections.abc import Callable

import pytest
import torch

from chromium import set_screen
from heedful.inspection.trace.trace import Trace
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.explaining import explained
from heedful.tasks.translation.pipeline import Translator
from traced_models import CASES, IMAGE, SOURCE, TARGET, V, loaded

keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
PAINTED = "return performance.getEntriesByName('explain-painted')[0]?.startTime ?? null"


def find(browser, selector: str):
    return browser.find_element("css selector", selector)


def find_all(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def painted(browser) -> float:
    """Wait until the page has drawn, and give the milliseconds since it was opened."""
    wait_for(lambda: browser.execute_script(PAINTED) is not None)
    return browser.execute_script(PAINTED)


def open_part(browser, part: str) -> None:
    painted(browser)
    button = find(browser, f"[data-part='{part}']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    wait_for(lambda: find(browser, f"[data-part='{part}']").get_attribute("aria-pressed") == "true")


def read_cell(browser, step: str, *moves: str) -> float:
    """The value that the picture of a step says after some arrow keys, from the followed row on."""
    card = f"[data-step='{step}']"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(browser, card))
    wait_for(lambda: find_all(browser, f"{card} .explain-row h4"))
    canvas = find(browser, f"{card} .explain-canvas")
    browser.execute_script("arguments[0].focus()", canvas)
    canvas.send_keys(*moves)
    wait_for(lambda: find(browser, f"{card} .explain-readout").text)
    return float(find(browser, f"{card} .explain-readout").get_attribute("data-value"))


def quiet(browser) -> None:
    """The console is silent, and nothing was asked of any network."""
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert not browser.get_log("browser") and not asked


@pytest.fixture(scope="module")
def translated():
    torch.manual_seed(5)
    pipeline = CASES["encoder-decoder"]().pipeline
    return explained(pipeline, SOURCE, target=TARGET)


@pytest.mark.parametrize("width", [1280, 390])
def test_cells_are_those_of_the_trace(open_page, browser, translated, width: int) -> None:
    set_screen(browser, width)
    browser = open_page(translated.html())
    trace: Trace = translated.trace
    open_part(browser, "encoder.1")
    weights = trace["encoder.1.attention.weights"]
    found = read_cell(browser, "encoder.1.attention.weights", keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_DOWN)
    assert found == pytest.approx(float(weights[0, 0, 1, 1]), rel=1e-3)
    selector = find(browser, ".explain-tools select")
    selector.send_keys("3")  # the third head
    row = trace["encoder.1.attention.scores"][0, 2, 0]
    card = "[data-step='encoder.1.attention.scores']"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(browser, card))
    shown = lambda: [each.text for each in find_all(browser, f"{card} .explain-value")]  # noqa: E731
    wait_for(lambda: shown() and number(shown()[0]) == pytest.approx(float(row[0]), rel=2e-3))
    assert [number(each) for each in shown()] == pytest.approx(row.tolist(), rel=2e-3, abs=1e-4)
    assert find(browser, f"{card} .explain-code").text.split()[-1].startswith("heedful/layers/attention.py:")
    labels = find(browser, f"{card} .explain-shape").get_attribute("aria-label")
    assert labels == f"Shape: heads 3, positions {len(row)}, positions of keys {len(row)}"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    quiet(browser)


def test_a_step_is_drawn_for_the_head_that_was_chosen_last(open_page, slow_unpacking: str, translated) -> None:
    browser = open_page(translated.html())
    painted(browser)
    browser.execute_script(slow_unpacking)
    browser.execute_script("document.querySelector(\"[data-part='encoder.1']\").click()")
    card = "[data-step='encoder.1.attention.scores']"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(browser, card))
    time.sleep(0.2)  # the step has begun to unpack
    find(browser, ".explain-tools select").send_keys("3")
    wait_for(lambda: browser.execute_script("return window.unpacked"))
    row = translated.trace["encoder.1.attention.scores"][0, 2, 0].tolist()
    shown = lambda: [number(each.text) for each in find_all(browser, f"{card} .explain-value")]  # noqa: E731
    assert shown() == pytest.approx(row, rel=2e-3, abs=1e-4)


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def test_the_decoder_is_played_token_by_token(open_page, translated) -> None:
    browser = open_page(translated.html())
    trace: Trace = translated.trace
    open_part(browser, "decoder.0")
    last = len(trace.tokens["target"])
    assert find(browser, ".explain-told").text.startswith(f"Step {last} of {last}: ")
    find_all(browser, ".explain-token")[0].click()
    find(browser, "[aria-label='Step forward']").click()
    expected = f"Step 2 of {last}: reads “{trace.tokens['target'][1].replace(' ', '·', 1)}”, writes"
    wait_for(lambda: find(browser, ".explain-told").text.startswith(expected))
    card = "[data-step='decoder.0.attention.masked']"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(browser, card))
    wait_for(lambda: find_all(browser, f"{card} .explain-value"))
    shown = [number(each.text) for each in find_all(browser, f"{card} .explain-value")]
    assert shown == pytest.approx(trace["decoder.0.attention.masked"][0, 0, 1].tolist(), rel=2e-3, abs=1e-4)
    assert shown[2:] == [float("-inf")] * (last - 2)
    find(browser, "[aria-label='Play the steps']").click()
    wait_for(lambda: find(browser, ".explain-told").text.startswith("Step 3 of"))
    open_part(browser, "answers")
    place = int(find(browser, ".explain-told").text.split()[1]) - 1
    best = float(trace["probabilities"][0, place].max())
    wait_for(lambda: find_all(browser, ".explain-answers .explain-value"))
    assert find(browser, ".explain-answers .explain-value").text == f"{100 * best:.1f} %"
    assert len(find_all(browser, ".explain-answers li")) == 20
    quiet(browser)


@pytest.mark.parametrize("name", list(CASES)[1:])
def test_every_family_has_its_drawing(name: str, open_page) -> None:
    torch.manual_seed(5)
    pipeline = CASES[name]().pipeline
    family = pipeline.config.family
    options = {"target": TARGET} if family == "encoder_decoder" else {}
    page = explained(pipeline, IMAGE if family == "vision" else SOURCE, **options)
    browser = open_page(page.html())
    for part in [each["name"] for each in page.to_json()["parts"]]:
        open_part(browser, part)
    assert len(find_all(browser, ".explain-drawing button")) == len(page.to_json()["parts"]) + 1
    quiet(browser)


def test_a_model_of_the_papers_size_is_a_small_page_that_paints_at_once(open_page) -> None:
    torch.manual_seed(5)
    stack = StackConfig(num_layers=6)
    model = EncoderDecoder(EncoderDecoderConfig(V, 512, 67, encoder=stack, decoder=stack))
    pipeline = Translator(loaded(model, "encoder_decoder"))
    found = explained(pipeline, "the red dog runs home " * 2 + "the red dog", target="blue sea, red sun " * 4)
    page = found.html()
    assert min(len(found.trace.tokens[name]) for name in ("source", "target")) >= 20
    assert len(page.encode()) < 10_000_000
    times: list[float] = []
    while len(times) < 5 and min(times, default=2000) >= 2000:  # the best of a few: other tests run beside it
        times.append(painted(open_page(page)))
    assert min(times) < 2000, times
