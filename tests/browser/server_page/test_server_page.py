"""The server's page, in a real browser, with a real server."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from chromium import set_dark, set_screen

SENTENCE = "red dog blue sea green tree white moon"
MARKUP = "<img src=x onerror=\"document.title='broken'\">"
# Keeps every text that the translation has had, to be looked at later.
WATCH = """
window.seen = [];
new MutationObserver(() => seen.push(document.querySelector(".output").textContent))
  .observe(document.querySelector(".output"), {childList: true, subtree: true, characterData: true});
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_from_typing_to_attention(quiet_page, width: int) -> None:
    page = quiet_page
    set_screen(page.driver, width)
    page.open("copy")
    page.run(WATCH)
    page.type(SENTENCE)
    text = page.output()
    assert text == page.api("/api/translate", text=SENTENCE)["translations"][0]["text"]
    partial = {each for each in page.run("return seen") if each and each != text and text.startswith(each)}
    assert len(partial) > 1

    page.all(".word")[2].click()
    prefix = " ".join(text.split(" ")[:2])
    expected = page.api("/api/alternatives", model="copy", text=SENTENCE, prefix=prefix)["alternatives"]
    page.wait(lambda: page.all(".choices .choice"))
    assert page.texts(".choice-text") == [each["text"].strip() for each in expected]
    marks = page.wait(lambda: page.all(".field-marks mark"))
    weights = [float(page.run("return arguments[0].style.getPropertyValue('--weight')", mark)) for mark in marks]
    assert len(marks) == 8 and max(weights) == 1
    attended = page.run("return arguments[0].textContent", marks[int(np.argmax(weights))])
    assert attended == text.split(" ")[2]

    page.all(".choices .choice")[1].click()
    prefix += expected[1]["text"]
    page.wait(lambda: page.output().startswith(prefix))
    assert page.output() == page.api("/api/translate", text=SENTENCE, prefix=prefix)["translations"][0]["text"]
    assert page.texts(".word.fixed") == prefix.split(" ")

    page.button("Attention").click()
    check_attention_view(page, page.api("/api/attention", model="copy", text=SENTENCE, target=page.output()))
    assert page.run("return document.documentElement.scrollWidth") <= width

    page.button("Undo").click()
    page.wait(lambda: page.output() == text)


def test_a_word_of_a_later_sentence_is_replaced_in_its_sentence_alone(quiet_page, browser_log) -> None:
    page = quiet_page
    page.open("copy")
    sentences = ["red dog blue sea.", "green tree white moon!", "one two three."]
    page.type(" ".join(sentences))
    (whole,) = page.api("/api/translate", model="copy", text=" ".join(sentences))["translations"]
    alone = [page.api("/api/translate", model="copy", text=each)["translations"][0]["text"] for each in sentences]
    page.wait(lambda: page.output() == whole["text"])
    assert whole["text"] == " ".join(alone)

    first_of_second = len(alone[0].split())
    page.all(".word")[first_of_second + 1].click()
    prefix = alone[1].split()[0]
    expected = page.api("/api/alternatives", model="copy", text=sentences[1], prefix=prefix)["alternatives"]
    page.wait(lambda: page.all(".choices .choice"))
    assert page.texts(".choice-text") == [each["text"].strip() for each in expected]
    marks = page.wait(lambda: page.all(".field-marks mark"))
    assert [page.run("return arguments[0].textContent", mark) for mark in marks] == sentences[1].split()

    prefix += expected[1]["text"]
    again = page.api("/api/translate", model="copy", text=sentences[1], prefix=prefix, split="none")["translations"][0]
    browser_log.read()
    browser_log.sent.clear()
    page.all(".choices .choice")[1].click()
    page.wait(lambda: page.output() == f"{alone[0]} {again['text']} {alone[2]}")
    browser_log.read()
    decoded = [json.loads(body)["text"] for address, body in browser_log.sent if address.endswith("/api/translate")]
    assert decoded == [sentences[1]]
    assert page.texts(".word.fixed") == prefix.split(" ")
    page.button("Undo").click()
    page.wait(lambda: page.output() == whole["text"])


def choose_first(page, label: str) -> None:
    """Choose the first of what a list of the attention view offers."""
    (picker,) = page.wait(lambda: [each for each in page.all(".detail .picker") if each.text.startswith(label)])
    Select(picker.find_element(By.TAG_NAME, "select")).select_by_value("0")


def check_attention_view(page, document: dict) -> None:
    """A weight of the first head of the first layer's cross-attention is the one that the API gives."""
    choose_first(page, "Layer")
    choose_first(page, "Head")
    page.run("arguments[0].focus()", page.one(".matrix-body"))
    page.keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    (first,) = [each for each in document["maps"] if (each["kind"], each["layer"]) == ("cross", 0)]
    assert float(page.one(".readout-weight").text) == first["weights"][0][1][2] > 0


def test_only_lines_that_change_are_translated_again(quiet_page, browser_log) -> None:
    page = quiet_page
    page.open("copy")
    page.type("red dog\n\nblue sea")
    assert page.output().split("\n") == ["red dog", "", "blue sea"]
    browser_log.read()
    browser_log.addresses.clear()
    page.type(" sun")
    page.wait(lambda: page.output().endswith("sun"))
    browser_log.read()
    assert sum("translate" in each for each in browser_log.addresses) == 1


def test_markup_stays_text(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.type(MARKUP)
    page.output()
    page.all(".word")[0].click()
    page.wait(lambda: page.all(".choices .choice"))
    page.one(".choices .own input").send_keys(MARKUP, Keys.ENTER)
    page.wait(lambda: page.output().startswith(MARKUP))
    page.button("Attention").click()
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .detail-body > *"))
    assert page.all("img") == []
    assert page.driver.title == "copy · heedful"


def test_by_keyboard_alone(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.keys(SENTENCE)
    text = page.output()
    assert page.tab_to(".word").text == "red"
    page.keys(Keys.ARROW_RIGHT)
    page.keys(Keys.ENTER)
    page.wait(lambda: "choice" in (page.driver.switch_to.active_element.get_attribute("class") or ""))
    page.keys(Keys.ESCAPE)
    assert page.driver.switch_to.active_element.text == text.split(" ")[1]
    page.keys(Keys.ENTER)
    page.wait(lambda: "choice" in (page.driver.switch_to.active_element.get_attribute("class") or ""))
    page.keys(Keys.ARROW_DOWN)
    chosen = page.driver.switch_to.active_element.text.split("\n")[0]
    page.keys(Keys.ENTER)
    page.wait(lambda: page.output().startswith(f"red {chosen}"))
    page.tab_to(".toolbar button")
    page.keys(Keys.SPACE)
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .detail-body > *"))


def test_several_translations(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.type("red dog")
    page.output()
    beams = page.all(".toolbar input")[1]
    beams.clear()
    beams.send_keys("3", Keys.ENTER)
    rows = page.wait(lambda: page.all(".others li button"))
    expected = page.api("/api/translate", text="red dog", nbest=3)["translations"][0]["nbest"]
    assert [row.text for row in rows] == [each["text"] for each in expected]
    rows[1].click()
    page.wait(lambda: page.output() == expected[1]["text"])


def test_copy_and_download(quiet_page, tmp_path: Path) -> None:
    page = quiet_page
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    page.open("copy")
    page.type("red dog\nblue sea")
    text = page.output()
    page.button("Copy").click()
    page.button("Copied")
    page.button("Download").click()
    page.wait(lambda: (tmp_path / "translation.txt").exists())
    assert (tmp_path / "translation.txt").read_text(encoding="utf-8") == text
    page.button("Clear").click()
    page.type(Keys.CONTROL + "v")
    assert page.one("textarea").get_property("value") == text


def test_completion_with_probabilities(quiet_page) -> None:
    page = quiet_page
    page.open("language-model")
    page.type("the dog ")
    for place, value in ((0, "13"), (4, "5")):
        page.all(".settings input")[place].clear()
        page.all(".settings input")[place].send_keys(value)
    page.type(Keys.CONTROL + Keys.ENTER)
    page.wait(lambda: page.all(".token") and page.all('.samples[aria-busy="false"]'))
    settings = {"max_tokens": 13, "temperature": 0.8, "seed": 5, "probabilities": True}
    expected = page.api("/api/generate", model="language-model", prompt="the dog ", **settings)["samples"][0]
    tokens = page.all(".token")
    shown = [page.run("return arguments[0].textContent", token) for token in tokens]
    assert shown == [token["text"] for token in expected["tokens"]]
    surprise = [float(page.run("return arguments[0].style.getPropertyValue('--surprise')", each)) for each in tokens]
    assert surprise == pytest.approx([1 - token["probability"] for token in expected["tokens"]])

    page.run("arguments[0].focus()", tokens[3])
    assert "could have been" in page.one(".tip").text
    page.keys(Keys.ENTER)
    page.wait(lambda: page.all(".choices .choice"))
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.wait(lambda: page.all('.samples[aria-busy="false"]'))
    kept = page.run("return document.querySelector('.prompt').textContent")
    assert kept.startswith("the dog " + "".join(shown[:3])) and kept != "the dog " + "".join(shown[:4])


def test_numbers_that_the_server_refuses_are_marked_or_explained(page) -> None:
    page.open("language-model")
    page.type("the dog ")
    tokens, _, top_p, *_, samples = page.all(".settings input")
    top_p.send_keys("0")
    assert page.run("return arguments[0].matches(':invalid')", top_p)
    top_p.send_keys(".000001")
    assert page.run("return arguments[0].matches(':valid')", top_p)
    for field, typed, becomes in ((top_p, "7", "1"), (top_p, "-7", "0.000001"), (samples, "2.5", "2")):
        field.clear()
        field.send_keys(typed)
        tokens.click()
        assert page.run("return arguments[0].value", field) == becomes
    tokens.clear()
    tokens.send_keys("4097")
    page.type(Keys.CONTROL + Keys.ENTER)
    page.wait(lambda: "max_tokens is 4097: the server generates 4096 at most" in page.one("#notice").text)


@pytest.fixture
def image_file(tmp_path: Path) -> Path:
    pixels = np.random.Generator(np.random.PCG64(1)).integers(0, 256, (30, 40, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "noise.png")
    return tmp_path / "noise.png"


def test_an_image_and_its_attention(quiet_page, image_file: Path) -> None:
    page = quiet_page
    page.open("vision")
    page.one("input[type=file]").send_keys(str(image_file))
    labels = page.wait(lambda: page.texts(".ranking-label"))
    assert sorted(labels) == list("abcdefg")
    page.button("Attention").click()
    heat = page.one(".stage-heat")
    painted = "return arguments[0].getContext('2d').getImageData(0, 0, 5, 3).data.some((value) => value > 0)"
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .detail-body > *"))
    assert page.run(painted, heat)
    assert page.one(".stage-image").is_displayed() and heat.is_displayed()


def test_labels_attention_and_steps_of_an_image_are_of_the_same_size(quiet_page, browser_log, image_file: Path) -> None:
    page = quiet_page
    page.open("vision")
    page.one("input[type=file]").send_keys(str(image_file))
    page.wait(lambda: page.texts(".ranking-label"))
    page.one("input[type=number]").send_keys("45", Keys.ENTER)
    page.button("Attention").click()
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .detail-body > *"))
    page.button("Step by step").click()
    page.wait(lambda: page.all(".explain-place:not([aria-busy]) > *"))
    browser_log.read()
    sizes = {urlsplit(address).path: json.loads(body).get("resolution") for address, body in browser_log.sent if body}
    assert sizes == {"/api/classify": 45, "/api/attention": 45, "/api/explain": 45}


@pytest.mark.parametrize(
    ("model", "text", "selector"),
    [
        ("classification", "the red dog", ".ranking .ranking-row"),
        ("tagging", "the red dog", ".tags .tag"),
        ("masked_language_model", "the [MASK] dog", ".answer .choice"),
        ("encoder", "the red dog\nthe blue sun", ".similarities td"),
    ],
)
def test_answers_about_text(quiet_page, model: str, text: str, selector: str) -> None:
    page = quiet_page
    page.open(model)
    page.type(text)
    page.wait(lambda: page.all(selector))
    page.button("Attention").click()
    shown = ".attention-place:not([aria-busy]) .detail-body > *"
    page.wait(lambda: page.all(shown))
    assert page.all(selector) and page.all(shown)


def test_a_pair_of_texts_is_judged_together(quiet_page) -> None:
    page = quiet_page
    page.open("classification")
    first, second = "the red dog\nis blue", "the sea"
    page.type(first)
    page.one("[aria-label='Second text']").send_keys(second)
    (found,) = page.api("/api/classify", model="classification", text=[[first, second]])["results"]
    percents = [f"{100 * share:.0f} %" for share in sorted(found["probabilities"].values(), reverse=True)]
    page.wait(lambda: page.texts(".ranking-value") == percents)
    page.button("Attention").click()
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .detail-body > *"))
    assert all(percent in page.one(".attention-place").text for percent in percents)


def test_dark_and_light(quiet_page) -> None:
    page = quiet_page
    set_dark(page.driver, True)
    page.open("copy")
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    dark = page.run(ground)
    assert max(map(int, dark[4:-1].split(","))) < 64
    page.one("#theme").click()
    light = page.run(ground)
    assert min(map(int, light[4:-1].split(","))) > 192
    page.open("copy")
    assert page.run(ground) == light
    page.run("localStorage.clear()")


def test_a_server_that_does_not_answer(page) -> None:
    page.open("copy")
    page.driver.set_network_conditions(offline=True, latency=0, throughput=-1)
    page.type("red dog")
    page.wait(lambda: "does not answer" in page.one("#notice").text)
    page.driver.delete_network_conditions()
    page.button("Try again").click()
    assert page.output() == "red dog"
    assert not page.one("#notice").is_displayed()


# What a server with a full queue, or with an API key, says to the first request.
REFUSE_ONCE = """
const real = window.fetch;
window.fetch = (path, options) => {
  const refused = arguments[0] === 401 ? !options.headers.Authorization : !window.refused;
  window.refused = true;
  if (!refused) return real(path, options);
  const body = JSON.stringify({error: {type: "refused", message: "Refused."}});
  return Promise.resolve(new Response(body, {status: arguments[0], headers: {"Retry-After": "1"}}));
};
"""


def test_a_busy_server_is_asked_again(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.run(REFUSE_ONCE, 429)
    page.type("red dog")
    page.wait(lambda: "server is busy" in page.one("#notice").text)
    assert page.output() == "red dog"
    assert not page.one("#notice").is_displayed()


# Translations of what begins with "red" fail until the server is mended.
FAIL_SOME = """
const real = window.fetch;
window.fetch = (path, options) => {
  if (window.mended || !options?.body?.includes('"text":"red')) return real(path, options);
  const body = JSON.stringify({error: {type: "internal_error", message: "A fault."}});
  return Promise.resolve(new Response(body, {status: 500}));
};
"""


def test_lines_after_those_that_failed_are_translated(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.run(FAIL_SOME)
    page.type("red dog\nred sea\nred sun\nred cat\nblue sea\nblue sun")
    assert page.output().split("\n") == ["", "", "", "", "blue sea", "blue sun"]
    assert "A fault." in page.one("#notice").text
    page.run("window.mended = true")
    page.button("Try again").click()
    page.wait(lambda: len(page.output()) > 40)
    assert page.output().split("\n")[2:5] == ["red sun", "red cat", "blue sea"]


def test_the_key_is_asked_for(quiet_page) -> None:
    page = quiet_page
    page.open("copy")
    page.run(REFUSE_ONCE, 401)
    page.type("red dog")
    page.one("#api-key").send_keys("secret", Keys.ENTER)
    assert page.output() == "red dog"
    page.run("sessionStorage.clear()")


def test_parts_of_a_character_are_found_in_the_text(page) -> None:
    page.open("copy")
    labels = [" ", "<E7>", "<8B>", "<97>", " ", "<F0>", "<9F>", "<90>", "<95>", " dog", "⟨end⟩"]
    program = "return import('/static/words.js').then((words) => words.locateTokens(...arguments))"
    found = page.run(program, labels, "狗 🐕 dog")
    places = [each and (each["start"], each["end"]) for each in found]
    assert places == [None, *[(0, 1)] * 3, None, *[(2, 4)] * 4, (5, 8), None]
