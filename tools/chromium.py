"""Headless Chromium driven by selenium, for the browser tests and for the pictures of the documentation."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# No window, and nothing that asks another host for anything.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)


def find_chromium() -> tuple[str, str] | None:
    """The browser and its driver, if both are installed."""
    browser = next((found for found in map(shutil.which, CHROMIUM) if found), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def running_chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser with an empty profile, which keeps logs of its console and of its requests."""
    found = find_chromium()
    assert found is not None, "Chromium or chromedriver is not installed"
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # A driver that is named keeps selenium from downloading one.
    driver = webdriver.Chrome(options, webdriver.ChromeService(found[1]))
    try:
        yield driver
    finally:
        driver.quit()


def set_screen(driver: webdriver.Chrome, width: int, height: int = 900, scale: float = 1) -> None:
    """Show pages on a screen of that size in CSS pixels; a narrow one is a phone's."""
    screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def set_dark(driver: webdriver.Chrome, dark: bool) -> None:
    """Pretend to be a system that prefers dark colours, or light ones."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def save_picture(driver: webdriver.Chrome, file: Path) -> None:
    """Save what the screen shows as a PNG file."""
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    file.write_bytes(base64.b64decode(picture["data"]))
