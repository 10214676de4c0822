"""Chromium without a window, and what tests of the page do in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]

FIRST = """
const [css, text, enabled] = arguments;
for (const each of document.querySelectorAll(css)) {
  if (!each.checkVisibility({ visibilityProperty: true }) || (enabled && each.disabled)) continue;
  if (text !== null && each.innerText.trim() !== text) continue;
  if (enabled) each.scrollIntoView({ block: "center" });  // not under the bar at the top
  return each;
}
return null;
"""
"""Finds an element in one call, since each question about one takes a while."""


class Page:
    """The page in a browser. What is looked for may take a while to appear."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Opens an address, from nothing: a new part after # alone would not load the page."""
        if self.driver.current_url != "about:blank":
            self.driver.get("about:blank")
        self.driver.get(url)

    def js(self, script: str, *arguments: Any) -> Any:
        """Runs JavaScript, and returns what it returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, css: str, text: str | None = None) -> Any:
        """Returns the first element that a selector finds and that is shown, with that text if one is given."""
        return self.until(lambda: self.js(FIRST, css, text, False), f"{css} {text or ''}")

    def all(self, css: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", css)
        return found

    def text(self, css: str) -> str:
        """Returns the text of the first element that a selector finds, "" if there is none."""
        found = self.js("return document.querySelector(arguments[0])?.textContent ?? ''", css)
        return str(found)

    def click(self, css: str, text: str | None = None) -> None:
        """Clicks on what a selector finds, on the first with that text if one is given."""
        self.until(lambda: self.js(FIRST, css, text, True), f"{css} {text or ''}").click()

    def fill(self, css: str, text: str) -> None:
        """Types into a field, in place of what it holds; a long text is pasted."""
        field = self.find(css)
        field.clear()
        if len(text) > 50:
            self.js("arguments[0].value = arguments[1]", field, text)
            self.js("arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", field)
        else:
            field.send_keys(text)

    def shows(self, css: str, text: str) -> None:
        """Waits until an element has a text in it."""
        self.until(lambda: text in self.text(css), f"{css} with {text!r}", lambda: self.text(css))

    def until(self, what: Callable[[], Any], wanted: str, there: Callable[[], str] = str, seconds: float = 30) -> Any:
        """Waits until something is true, and returns it."""
        from selenium.common.exceptions import StaleElementReferenceException

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = what()
            except StaleElementReferenceException:  # replaced meanwhile
                found = None
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"waited in vain for {wanted}; there is {there()!r}")

    def complaints(self) -> list[str]:
        """Returns what the browser has complained of since the last call."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]

    def unnamed(self) -> list[str]:
        """Returns what people can use and what screen readers cannot name, and headings that skip a level."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        found, level = [], 0
        for node in nodes:
            role, name = (node.get(key, {}).get("value", "") for key in ("role", "name"))
            has = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
            used = has.get("focusable") or role in ("dialog", "image", "img", "meter", "region", "table")
            if node.get("ignored") or role in ("RootWebArea", "main"):
                continue
            if used and not name.strip():
                found.append(f"{role}: {sorted(has)}")
            if role == "heading":
                if has["level"] > level + 1:
                    found.append(f'heading "{name}" of level {has["level"]}')
                level = has["level"]
        return found

    def width(self, pixels: int) -> None:
        """Makes the window so wide; 0 for its own width."""
        if pixels:
            size = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": pixels < 600}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        else:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def chromium() -> Iterator[Page]:
    """Yields a page in a browser that runs as long as the context."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for each in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1400,1000"):
        options.add_argument(f"--{each}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        yield Page(driver)
    finally:
        driver.quit()
