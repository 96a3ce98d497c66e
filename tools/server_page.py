"""The server's page in a browser, as a test or a program uses it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from server_process import wait_until


@dataclass
class Page:
    """The page of a server in the browser, and the server's API to compare it with."""

    driver: Chrome
    address: str

    def open(self, model: str = "") -> None:
        """Load the page again, with that model chosen."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}/#{model}")
        self.wait(lambda: self.all("#workspace > *"))

    def wait(self, holds: Callable[[], Any]) -> Any:
        return wait_until(holds)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return wait_until(lambda: self.all(selector))[0]

    def button(self, label: str) -> WebElement:
        """The button that is shown with this text on it."""
        return wait_until(lambda: [each for each in self.all("button") if each.text == label and each.is_displayed()])[
            0
        ]

    def texts(self, selector: str) -> list[str]:
        return [each.text for each in self.all(selector)]

    def type(self, text: str) -> None:
        """Type into the workspace's text field."""
        self.one("textarea").send_keys(text)

    def keys(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def tab_to(self, selector: str) -> WebElement:
        """Press Tab until the focus is on such an element."""
        for _ in range(30):
            focused = self.driver.switch_to.active_element
            if self.run("return arguments[0].matches(arguments[1])", focused, selector):
                return focused
            focused.send_keys(Keys.TAB)
        raise AssertionError(f"the Tab key does not lead to {selector}")

    def run(self, program: str, *values: Any) -> Any:
        return self.driver.execute_script(program, *values)

    def output(self) -> str:
        """The translation, once all of it is there."""
        self.wait(lambda: self.all('.output[aria-busy="false"] .word'))
        return "\n".join(self.texts(".line"))

    def api(self, path: str, **body: Any) -> Any:
        """What the server answers to a request with this body."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
