"""How the attention page looks on a phone, a laptop and a large screen: all of it is seen, and small weights too."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from chromium import set_dark, set_screen
from heedful.inspection.attention.maps import AttentionMap, AttentionMaps, Positions
from heedful.inspection.attention.patch_image import PatchImage
from heedful.inspection.attention.predictions import Prediction
from server_process import wait_until

SCREENS = ((390, 844), (1280, 900), (1920, 1080))
LONG_WORD = " Donaudampfschifffahrtsgesellschaftskapitän"
LABELS = ["⟨start⟩", LONG_WORD, *(f" word{number}" for number in range(12))]
SMALL = 0.02
Open = Callable[[str], Chrome]

# The colour of the middle of a cell as it is seen on its ground, from 0 to 1.
CELL_COLOUR = """
const [query, key, queries, keys] = arguments;
const canvas = document.querySelector(".matrix-body");
const ground = getComputedStyle(document.querySelector(".panel")).backgroundColor.match(/[\\d.]+/g).map(Number);
const place = [(key + 0.5) / keys * canvas.width, (query + 0.5) / queries * canvas.height].map(Math.floor);
const [red, green, blue, opacity] = canvas.getContext("2d").getImageData(...place, 1, 1).data;
return [red, green, blue].map((value, part) => (value * opacity / 255 + ground[part] * (1 - opacity / 255)) / 255);
"""
TILE_COLOURS = """
return [...document.querySelectorAll(".tile-row:nth-child(2) canvas")].map((canvas) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return [0, 1, 2].map((part) => data.filter((_, place) => place % 4 === part).reduce((sum, value) => sum + value, 0));
});
"""
SCROLLING = """
const scrolls = (each) => ["auto", "scroll", "hidden"].includes(getComputedStyle(each).overflowY);
return [...document.querySelectorAll(".overview, .overview div")].filter(scrolls).map((each) => each.className);
"""
BOX = """
const { left, top, right, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
return [left, top, right, bottom];
"""
# Each name in a list of weights, and how many of its pixels are cut off.
NAMES = """
const names = [...document.querySelectorAll(".bar-name")];
return names.map((each) => [each.innerText, each.scrollWidth - each.clientWidth]);
"""


def language_model() -> AttentionMaps:
    """A causal model of 6 layers of 8 heads, in which the second token gives 0.02 to the first."""
    random = np.random.default_rng(2)
    size = len(LABELS)
    maps = []
    for layer in range(6):
        weights = np.tril(random.gamma(0.5, size=(8, size, size))).astype(np.float32) + np.eye(size, dtype=np.float32)
        weights /= weights.sum(-1, keepdims=True)
        weights[:, 1, :2] = SMALL, 1 - SMALL
        maps.append(AttentionMap("decoder", layer, "source", "source", weights))
    outputs = tuple(Prediction(label, 0.1, (("b", 0.05),), ("source", place)) for place, label in enumerate(LABELS))
    return AttentionMaps("gpt", "decoder_only", {"source": Positions.in_a_row(LABELS)}, maps, outputs)


def image_classifier() -> AttentionMaps:
    image = PatchImage(np.random.default_rng(1).integers(0, 256, (3, 72, 84), dtype=np.uint8), (6, 6), True)
    random = np.random.default_rng(3)
    maps = []
    for layer in range(4):
        weights = random.dirichlet(np.full(169, 0.3), (4, 169)).astype(np.float32)
        weights[:, 0, 1 + 9 * 14 + 10] = 1  # row 10, column 11
        maps.append(AttentionMap("image", layer, "image", "image", weights / weights.sum(-1, keepdims=True)))
    outputs = (Prediction("cat", 0.75, tuple((f"label {number}", 0.05) for number in range(5))),)
    return AttentionMaps("vit", "vision", {"image": Positions.on_a_grid(12, 14, True)}, maps, outputs, image)


def opened(open_page: Open, maps: AttentionMaps) -> Chrome:
    browser = open_page(maps.html())
    wait_until(lambda: browser.execute_script("return performance.getEntriesByName('attention-painted').length"))
    return browser


def screens(browser: Chrome) -> Iterator[tuple[int, int]]:
    """The page on each screen, drawn anew."""
    for width, height in SCREENS:
        set_screen(browser, width, height)
        # Two frames: one to lay the page out, one for what it draws when it sees its new width.
        browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))"
        )
        yield width, height


def luminance(colour: list[float]) -> float:
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: list[float], other: list[float]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_all_heads_are_seen_over_the_whole_width(open_page: Open) -> None:
    browser = opened(open_page, language_model())
    for width, _ in screens(browser):
        seen = browser.execute_script("return document.documentElement.clientWidth")
        assert browser.execute_script("return document.scrollingElement.scrollWidth") <= seen
        overview, detail = (browser.execute_script(BOX, f".{name}") for name in ("overview", "detail"))
        assert detail[2] - overview[0] > 0.9 * seen, width
        last = browser.execute_script(BOX, ".tile-row:nth-child(7) .tile:last-child")
        assert last[2] > overview[2] - 40 and last[3] <= overview[3], width
        first = browser.execute_script(BOX, ".tile-row:nth-child(7) .tile")
        assert first[1] == last[1], width  # 8 heads and their mean are in one row
        assert browser.execute_script(SCROLLING) == [], width
        beside = detail[0] >= overview[2]
        assert beside == (width > 600)


@pytest.mark.parametrize("dark", [False, True])
def test_a_small_weight_is_told_from_none_and_heads_by_their_hues(open_page: Open, browser: Chrome, dark: bool) -> None:
    set_dark(browser, dark)
    opened(open_page, language_model())
    size = len(LABELS)
    for tile in (1, 9):  # the first head, and the mean of all
        browser.execute_script("document.querySelectorAll('.tile')[arguments[0]].click()", tile)
        name = "head 1" if tile == 1 else "mean"
        wait_until(lambda name=name: name in browser.find_element("css selector", ".detail h2").text)
        small, none = (browser.execute_script(CELL_COLOUR, 1, key, size, size) for key in (0, 2))
        assert contrast(small, none) > 1.25, (tile, small, none)
    tiles = browser.execute_script(TILE_COLOURS)
    hues = sorted(360 * colorsys.rgb_to_hsv(*colour)[0] for colour in tiles[:8])
    assert sum(after - before > 15 for before, after in zip(hues, [*hues[1:], hues[0] + 360], strict=True)) >= 7, hues
    legend = browser.find_element("css selector", ".detail-aside").text
    assert "Square-root scale" in legend and "0.02" in legend.split()


def test_what_is_read_out_is_complete(open_page: Open) -> None:
    browser = opened(open_page, language_model())
    browser.execute_script("document.querySelectorAll('.tile')[2].click()")
    browser.execute_script("document.querySelector('.matrix-body').focus()")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    wait_until(lambda: LONG_WORD.strip() in browser.find_element("css selector", ".readout-line").text)
    for width, _ in screens(browser):
        found = browser.execute_script(NAMES)
        assert LONG_WORD.replace(" ", "·") in {name.strip() for name, _ in found}, width
        assert all(cut <= 0 for _, cut in found), width


def test_the_image_is_on_the_first_screen_beside_the_maps(open_page: Open) -> None:
    browser = opened(open_page, image_classifier())
    for width, height in screens(browser):
        left, top, right, bottom = browser.execute_script(BOX, ".stage-heat")
        assert 0 <= left < right <= width and 0 <= top < bottom <= height, width
        assert right - left > 300, width
        if width > 600:
            assert left >= browser.execute_script(BOX, ".overview")[2], width
        name = browser.find_element("css selector", ".readout .bar-name")
        assert name.text == "row 10, column 11"
        assert browser.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", name), width
