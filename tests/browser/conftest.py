"""A real Chromium without a window, driven by selenium."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def new_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., object]]:
    """Starts a browser of some width; skipped without Chromium, unless REQUIRE_BROWSER=1 says that it must be there."""
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver):
        reason = "there is no chromium or no chromedriver"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    webdriver = pytest.importorskip("selenium.webdriver")
    started = []

    def start(width: int = 1280, height: int = 900, scheme: str = "light") -> object:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
        started.append(browser)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        return browser

    yield start
    for browser in started:
        browser.quit()


@pytest.fixture(scope="session")
def browser(new_browser: Callable[..., object]) -> object:
    return new_browser()


@pytest.fixture
def open_page(browser, tmp_path: Path) -> Callable[[str], object]:
    """Opens a page as a file, and gives the browser."""

    def opened(page: str) -> object:
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        browser.get(file.as_uri())
        return browser

    return opened
