"""The training page in a real browser: what it shows is what the run recorded, by pointer and by keyboard."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from heedful.inspection.run.run_record import read_run
from heedful.inspection.run.training_page import training_document, training_page

Open = Callable[..., Chrome]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The records of a run, with a wicked example."""
    run = tmp_path / "a-run" / "run"
    (run / "checkpoints" / "step-000000060").mkdir(parents=True)
    (run / "checkpoints" / "step-000000060" / "state.json").write_text('{"finished": true}')
    resolved = {"family": "encoder_decoder", "preset": "tiny", "training": {"optimizer": {"clip_norm": 1.0}}}
    saved = {"resolved": resolved, "choices": [{"name": "end", "value": "after 60 steps", "reason": "as asked"}]}
    (run / "config.json").write_text(json.dumps({"requested": {"data": {}}, "saved": saved}))
    rows: list[dict[str, Any]] = []
    for number in range(1, 61):
        row = {"kind": "train", "step": number, "loss": 6 - number / 12, "learning_rate": 1e-3, "gradient_norm": 1.5}
        row |= {"target_tokens": 100, "padding": 0.02, "seconds": 0.5, "elapsed": 10 + number * 0.5}
        rows.append(row)
        if number % 20 == 0:
            examples = [{"source": "<img src=x onerror=document.title='wicked'>", "translation": f"try {number}"}]
            row = {"kind": "validation", "step": number, "loss": 5 - number / 20, "BLEU": number / 2, "input_gain": 2.0}
            row |= {"attention_entropy": {"cross": [0.5, 0.7]}, "examples": examples, "answers": None}
            rows.append({**row, "seconds": 1.0, "elapsed": 10 + number * 0.5})
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run.parent


@pytest.fixture
def opened(new_browser, open_page, folder: Path) -> Open:
    def opened_at(width: int, scheme: str) -> Chrome:
        new_browser(width, 900, scheme)
        return open_page(training_page(read_run(folder)))

    return opened_at


def legend(browser: Chrome, title: str) -> dict[str, str]:
    script = """
        const figures = [...document.querySelectorAll("figure")];
        const figure = figures.find((each) => each.querySelector("h3").textContent === arguments[0]);
        const lines = [...figure.querySelectorAll(".legend div:not(.where)")];
        return lines.map((each) => [...each.children].map((part) => part.textContent));
    """
    return dict(browser.execute_script(script, title))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_shows_the_run(opened: Open, width: int, scheme: str) -> None:
    browser = opened(width, scheme)
    text = browser.find_element("tag name", "body").text
    assert "a-run" in text and "Healthy" in text and "after 60 steps" in text and "try 60" in text
    assert "<img src=x" in text and browser.title == "Training of a-run"
    assert legend(browser, "BLEU") == {"held-out": "30"}
    assert legend(browser, "Attention entropy") == {"decoder to source": "60.0 %"}
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.get_log("browser") == []


def test_the_row_whose_weights_are_kept_is_marked(opened: Open, folder: Path) -> None:
    def marked() -> list[str]:
        rows = opened(1280, "light").find_elements("css selector", "section[aria-label=Validations] tbody tr")
        return [row.text for row in rows if "weights are kept" in row.text]

    (row,) = marked()
    assert row.startswith("60 ") and "2.0000 (lowest: these weights are kept)" in row
    records = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        if record["kind"] == "validation":
            record["wrong"] = {20: 0.5, 40: 0.25, 60: 0.375}[record["step"]]
    (folder / "run" / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    document = training_document(read_run(folder))
    assert document["validations"][document["kept"]]["step"] == 40
    (row,) = marked()
    assert row.startswith("40 ") and "3.0000 (fewest wrong answers: these weights are kept)" in row


def test_the_slowest_process_is_told_in_words_and_in_a_table(opened: Open, folder: Path) -> None:
    (folder / "run" / "logs").mkdir()
    for rank in range(2):
        step = {"kind": "step", "loss": 1.0, "seconds": 0.5, "waited": 0.25 * (1 - rank)}
        rows = [json.dumps({**step, "step": number}) + "\n" for number in range(1, 61)]
        (folder / "run" / "logs" / f"rank-{rank}.log").write_text("".join(rows))
    section = opened(390, "light").find_element("css selector", "section[aria-label=Processes]")
    assert "rank 1 is the slowest, with 0.5 s of its own per step" in section.text
    assert section.text.splitlines()[-2:] == ["rank 0 0.500 s 0.500 s 0.250 s", "rank 1 0.500 s 0.500 s 0.500 s"]


def test_values_are_read_by_keyboard_and_the_axis_can_be_time(opened: Open, folder: Path) -> None:
    browser = opened(1280, "light")
    browser.execute_script(
        "const slider = document.querySelector('input[type=range]'); slider.value = 0;"
        "slider.dispatchEvent(new Event('input'));"
    )
    plot = browser.find_element("css selector", ".plot")
    plot.send_keys(Keys.HOME)
    assert legend(browser, "Loss") == {"training": "–", "held-out": "–"}
    plot.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT * 5)
    steps = training_document(read_run(folder))["steps"]
    assert float(legend(browser, "Loss")["training"]) == pytest.approx(steps["loss"][29], abs=1e-3)
    assert legend(browser, "Loss")["held-out"] == "4"
    assert "step 30: training 3.5" in browser.find_element("css selector", ".spoken").get_attribute("textContent")
    browser.find_element("css selector", "input[value=minutes]").click()
    assert "min" in browser.find_element("css selector", ".plot svg").text


def test_light_and_dark_can_be_switched(opened: Open) -> None:
    browser = opened(1280, "light")
    colour = "return getComputedStyle(document.documentElement).backgroundColor"
    light = browser.execute_script(colour)
    browser.find_element("css selector", ".theme").click()
    assert browser.execute_script(colour) != light
    assert browser.find_element("css selector", ".theme").text == "Light"
