"""Takes the pictures of the page in docs/service.md: python docs/tools/screenshots.py

It needs Chromium, its driver, Selenium and Pillow.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

import spectralbai as sb
from spectralbai.service.sample import RATES, sample_instance

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.service.chromium import Page, chromium  # noqa: E402
from tests.service.running import running  # noqa: E402

GAP = 20
"""Pixels between the pictures of a phone."""


def work(study: sb.Study, results: int) -> None:
    """Does trials, by two workers; the outcomes are the same in every run."""
    rng = np.random.default_rng(1)
    told = 0
    while told < results and (tickets := study.ask(min(20, results - told), f"server {1 + told % 2}")):
        study.tell_many([(each, float(rng.random() < RATES[each.label])) for each in tickets])
        told += len(tickets)


def learners(studies: sb.Studies) -> sb.Study:
    """Returns a study of twenty learners on the splits of data sets, half-way to its decision."""
    names = {"option": "learner", "item": "split", "outcome": "accuracy", "cluster": "data set"}
    table = sb.Table.from_csv(ROOT / "examples" / "accuracies.csv", **names)
    problem = sb.Problem.bounded(
        sb.Graph.from_edges(table.n_options, []), np.inf, tolerance=0.03, items=sb.Items.listed(table.n_items)
    )
    study = studies.create("learners", sb.Instance(problem, labels=table.options), 0.05, items=table.items, seed=1)
    place = {item: number for number, item in enumerate(table.items)}
    told = 0
    while told < 700 and (tickets := study.ask(20, "server 1")):
        study.tell_many([(each, float(table.outcomes[each.arm, place[each.item or ""]])) for each in tickets])
        told += len(tickets)
    return study


def taken(page: Page, width: int, height: int, top: str | None = None) -> Image.Image:
    """Returns a picture of what is shown, from an element on."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    if top is not None:
        page.js("document.querySelector(arguments[0]).scrollIntoView({block: 'start'})", top)
    time.sleep(1)  # until lines have moved to their places
    return Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")


def keep(picture: Image.Image, name: str) -> None:
    """Writes a picture, in all its colours."""
    picture.save(ROOT / "docs" / name, optimize=True)


def shown(page: Page, url: str, name: str, theme: str) -> None:
    """Opens a study and waits for its race."""
    page.open(url)
    page.js("localStorage.setItem('spectralbai-theme', arguments[0])", theme)
    page.open(f"{url}/#/study/{name}")
    page.until(lambda: page.all(".race path.line"), "the race")
    page.js("document.documentElement.style.scrollbarWidth = 'none'")


def main() -> None:
    """Takes all pictures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        sb.Studies(f"sqlite:///{folder}/studies.db") as studies,
        running() as start,
        chromium() as page,
    ):
        url = start(studies)
        work(studies.create("pages with a budget", sample_instance(), 0.05, budget=900), 500)
        work(studies.create("pages, decided", sample_instance(), 0.05), 10_000)
        phone = studies.create("pages", sample_instance(), 0.05)
        work(phone, 420)
        phone.ask(5, "server 1")
        shown(page, url, "pages with a budget", "light")
        keep(taken(page, 1400, 1480), "service_study.png")
        shown(page, url, "pages, decided", "dark")
        keep(taken(page, 1400, 1340), "service_decided.png")
        shown(page, url, "pages", "light")
        page.fill("#control", "plain")
        page.click("button", "Compare")
        page.shows(".comparisons", "control")
        page.js("document.querySelector('.bar').style.position = 'static'; scrollTo(0, 0)")
        places = (None, "section[aria-labelledby=options-title]", "section[aria-labelledby=compare-title]")
        parts = [taken(page, 375, 1180, place) for place in places]
        whole = Image.new("RGB", (3 * 375 + 2 * GAP, 1180), "white")
        for number, part in enumerate(parts):
            whole.paste(part, (number * (375 + GAP), 0))
        keep(whole, "service_phone.png")
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.open(f"{url}/#/new")
        page.click("button", "Use an example")
        page.click("button", "Show the plan")
        page.shows(".plan", "Trials to expect")
        page.js("document.documentElement.style.scrollbarWidth = 'none'")
        page.js("document.querySelector('.bar').style.position = 'static'; document.activeElement.blur()")
        keep(taken(page, 1000, 830, ".create > fieldset:nth-of-type(5)"), "service_plan.png")
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        shown(page, url, learners(studies).name, "light")
        page.js("document.querySelector('.bar').style.position = 'static'")
        page.until(lambda: page.all(".items .shade"), "options on items")
        keep(taken(page, 1200, 560, "[aria-labelledby=items-title]"), "service_items.png")


if __name__ == "__main__":
    main()
