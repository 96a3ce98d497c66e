"""A real browser, for the tests of pages: started once, with fresh logs and a known screen for each test."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome

from chromium import find_chromium, running_chromium, set_dark, set_screen


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    if find_chromium() is None:
        reason = "Chromium and chromedriver are not installed: tools/install-chromium does it"
        (pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip)(reason)
    with running_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@dataclass
class BrowserLog:
    """What the console and the network have seen since the test began."""

    driver: Chrome
    messages: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)  # addresses, and the bodies that went to them

    def read(self) -> None:
        """Take in what is new."""
        self.messages += [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                request = event["params"]["request"]
                self.addresses.append(request["url"])
                self.sent.append((request["url"], request.get("postData", "")))

    def hosts(self) -> set[str]:
        """The hosts that were asked for something."""
        self.read()
        return {urlsplit(address).netloc for address in self.addresses} - {""}


@pytest.fixture
def browser(one_browser: Chrome) -> Chrome:
    one_browser.get("about:blank")
    set_screen(one_browser, 1280)
    set_dark(one_browser, False)
    for kind in ("browser", "performance"):
        one_browser.get_log(kind)
    return one_browser


@pytest.fixture
def browser_log(browser: Chrome) -> BrowserLog:
    return BrowserLog(browser)


@pytest.fixture
def open_page(browser: Chrome, tmp_path: Path) -> Callable[[str], Chrome]:
    """Opens a page as a file, and gives the browser."""

    def opened(page: str) -> Chrome:
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        browser.get(file.as_uri())
        return browser

    return opened


@pytest.fixture
def new_browser(browser: Chrome) -> Callable[[int, int, str], Chrome]:
    """The browser with another screen, and with that colour scheme."""

    def shown(width: int, height: int, scheme: str) -> Chrome:
        set_screen(browser, width, height)
        set_dark(browser, scheme == "dark")
        return browser

    return shown


@pytest.fixture
def slow_unpacking() -> str:
    """A script after which what is unpacked first comes late; `unpacked` then says that it has had time to be drawn."""
    return """
        const read = Response.prototype.arrayBuffer;
        let begun = 0;
        Response.prototype.arrayBuffer = async function () {
          const late = (begun += 1) === 1;
          const found = await read.call(this);
          if (late) {
            await new Promise((done) => setTimeout(done, 1500));
            setTimeout(() => (window.unpacked = true), 200);
          }
          return found;
        };
    """
