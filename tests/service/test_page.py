"""The page in a real browser. Skipped where Chromium, its driver or Selenium are not installed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import spectralbai as sb
from spectralbai import SpectralRace
from spectralbai.report.tables import comparisons_of
from spectralbai.service.access import Access, TokenFile
from spectralbai.service.sample import RATES, sample_instance
from spectralbai.study import export_study
from tests.service.chromium import MISSING, Page, chromium
from tests.service.running import running
from tests.service.test_guide import SITE, example
from tests.study.contract import ITEMS, LABELS, ItemStudyContract, answered, score

pytest.importorskip("selenium", reason="the page is tested with Selenium, which is not installed")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the page is tested in Chromium; not installed: {MISSING}")

TABLE = """dose,milligrams,kind,expected
placebo,0,none,0.1
5 mg,5,low,0.3
10 mg,10,low,0.4
20 mg,20,high,0.8
"""
HOSTILE = (
    "<script>document.title='hit'</script>",
    "<img src=x onerror=\"document.title='hit'\">",
    "x" * 200,
    "שלום עולם (1)",
    '"quoted" & <b>bold</b>',
    "javascript:alert(1)",
)
CUT_OFF_ONCE = """
const [ending] = arguments, whole = window.fetch;
window.fetch = (path, ...rest) => {
  if (!String(path).endsWith(ending)) return whole(path, ...rest);
  window.fetch = whole;
  return Promise.reject(new TypeError("cut off"));
};
"""
Serve = Callable[..., str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture
def page(browser: Page, studies: sb.Studies, serve: Serve) -> Iterator[Page]:
    """The browser, which must not complain of anything in a test; it leaves the page before its service ends. What is
    shown at the end of a test must have names for screen readers."""
    browser.complaints()
    yield browser
    complaints = browser.complaints()
    unnamed = browser.unnamed() and browser.unnamed()  # a second look, if something was just being made
    browser.driver.get("about:blank")
    assert complaints == []
    assert unnamed == []


@pytest.fixture
def live(studies: sb.Studies, serve: Serve) -> str:
    """The address of a service that looks for changes often."""
    return serve(studies, every=0.05)


def at(url: str, name: str) -> str:
    return f"{url}/#/study/{quote(name, safe='')}"


def work(study: sb.Study, n: int, rates: dict[str, float] | None = None, at_once: int = 30) -> None:
    """Does so many trials; the outcomes are the same in every run."""
    rng = np.random.default_rng(1)
    while n > 0:
        tickets = study.ask(min(n, at_once), "server 1")
        if not tickets:
            return
        study.tell_many([(each, float(rng.random() < (rates or RATES)[each.label])) for each in tickets])
        n -= len(tickets)


def test_empty_list_says_how_to_begin(page: Page, live: str) -> None:
    page.open(live)
    page.shows("main .empty", "No studies yet")
    page.shows("#link", "Live")
    assert page.js("return document.title") == "Studies - spectralbai"
    page.click("main .button", "New study")
    page.shows("h1", "New study")


def test_study_from_a_table(page: Page, live: str, studies: sb.Studies, tmp_path: Path) -> None:
    file = tmp_path / "doses.csv"
    file.write_text(TABLE, "utf-8")
    page.open(f"{live}/#/new")
    page.find("#arms-file").send_keys(str(file))
    page.shows(".preview caption", "4 rows; the first 4 are shown")
    assert page.text(".preview thead").startswith("dosemilligramskindexpected")
    page.js("document.querySelector('#guess').value = 'expected'")
    page.fill("#step", "0.3")
    page.click("button", "Show the plan")  # the first column of numbers is chosen, and outcomes are 0 or 1
    page.shows(".plan", "Trials to expect")
    page.fill("#step", "0.2")
    assert page.js("return document.querySelector('.plan').hidden"), "a plan of other choices is still shown"
    page.click("label[for=alike-by]")
    page.js("document.querySelector('#by').value = 'kind'")
    page.fill("#tolerance", "0.05")
    page.fill("#budget", "2000")
    page.click("button", "Show the plan")
    page.shows(".plan", "3 categories")
    page.fill("#name", "doses/1 %")
    page.click("button", "Create the study")
    page.shows(".verdict", "Nothing is told yet.")
    page.shows("#notices", "The study is created.")
    definition = studies.open("doses/1 %").definition
    assert definition.budget == 2000 and definition.instance.labels == ("placebo", "5 mg", "10 mg", "20 mg")


def test_study_on_items_from_a_list(page: Page, live: str, studies: sb.Studies) -> None:
    page.open(f"{live}/#/new")
    page.fill("#arms", "prompt\nterse\nstep by step\nfew shots\n")
    page.click("label[for=alike-none]")
    page.click("button", "Show the plan")
    page.shows(".refused", "Trials on items do without options that are alike")
    assert page.js("return document.querySelector('#sample-fresh').checkVisibility()") is False
    page.fill("#items", "item,topic\n" + "".join(f"question {number},sums\n" for number in range(1, 13)))
    page.click("label[for=sample-fresh]")
    page.click("button", "Show the plan")
    page.shows(".plan", "at most 36")
    assert "null" not in page.text(".plan")
    page.fill("#name", "prompts")
    page.click("button", "Create the study")
    page.shows(".verdict", "Nothing is told yet.")
    definition = studies.open("prompts").definition
    assert definition.instance.problem.items == sb.Items.fresh(12)
    assert sorted(definition.items or ()) == sorted(f"question {number}" for number in range(1, 13))
    page.shows(".items", "No outcome is told yet.")
    page.shows("[aria-labelledby=graph-title]", "Nothing was said of which options are alike.")


def test_items_are_drawn_as_they_come(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("questions", ItemStudyContract.LISTED, 0.05, items=ITEMS, seed=1)
    answered(study, 30)
    out = study.ask(2, "lab")
    page.open(at(live, "questions"))
    page.shows("#items-title", "Options on items")
    page.until(lambda: page.all(".items .shade"), "colours")
    assert len(page.all(".items .row-name")) == 5 and page.text(".items .row-name") == "plain"
    page.until(lambda: page.text(".figure:nth-child(2) .more").startswith("of 40"), "items done")
    assert page.text("[aria-labelledby=tickets-title] td.item") == study.pending()[-1].item
    page.js("document.querySelector('.items').focus()")
    page.find(".items").send_keys(chr(0xE014), chr(0xE015))  # right, down: the first pair, then the option below
    table = study.table()
    page.shows(".items .tooltip", table.items[0])
    before = page.js("return document.querySelectorAll('.items .shade').length")
    assert before == 2, "0 and 1 have a colour each"
    study.tell_many((ticket, score(ticket)) for ticket in out)
    answered(study)
    page.shows(".verdict", "Decided after")
    page.until(lambda: "items" in page.text("[aria-labelledby=items-title]"), "the sentence on items")
    page.until(lambda: page.text("[data-number] td.item"), "items of results")
    assert page.js("return document.querySelector('td.behind').checkVisibility()") is True
    page.open(live)
    page.shows(".studies tbody", "questions")


def test_options_join_a_study_on_items(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("questions", ItemStudyContract.LISTED, 0.05, items=ITEMS, seed=1)
    page.open(f"{live}/#/join/questions")
    page.fill("#arms", "\n".join(["option", *LABELS, "coldest"]) + "\n")
    page.click("label[for=alike-none]")
    page.click("button", "Show what changes")
    page.shows(".plan", "1 option joined (coldest)")
    page.click("button", "Add 1 option")
    page.shows("#notices", "1 option joined (coldest)")
    assert study.status().arms[-1].label == "coldest"
    assert study.definition.instance.problem.items == sb.Items.listed(40)


def test_refusals_of_a_plan_are_said_in_words(page: Page, live: str) -> None:
    page.open(f"{live}/#/new")
    page.click("button", "Show the plan")
    page.shows(".refused", "Choose or paste a table of options first.")
    page.fill("#arms", "dose,form\na,pill\nb,syrup\n")
    page.click("button", "Show the plan")
    page.shows(".refused", "Choose a column of numbers to compare by")
    page.fill("#arms", "dose,mg\na,1\na,2\n")
    page.click("button", "Show the plan")
    page.shows(".refused", "Say by how much options that are alike differ at most")
    page.fill("#step", "0.1")
    page.click("button", "Show the plan")
    page.shows(".refused", 'the label "a" is taken by line 2')
    assert [each for each in page.complaints() if "422" not in each] == []  # the browser notes every refusal


def test_page_changes_while_workers_tell(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("pages", sample_instance(), 0.05)
    page.open(at(live, "pages"))
    page.shows(".verdict", "Nothing is told yet.")
    page.fill("#find", "dark")
    page.until(lambda: len(page.all(".options tbody tr")) == 3, "three options")
    work(study, 90)
    page.shows(".figure dd", "90")
    page.until(lambda: page.js("return document.querySelectorAll('.race path.line').length") >= 10, "lines")
    page.js("document.querySelector('details').open = true; scrollTo(0, 300)")
    place = page.js("return document.querySelector('.race').getBoundingClientRect().top")
    work(study, 60)
    page.shows(".figure dd", "150")
    page.shows(".verdict", "Not decided after 150 results")
    page.until(lambda: page.text("[data-number='150']"), "the newest result")
    kept = page.js(
        "return [document.activeElement.id, document.activeElement.value, document.querySelector('details').open, "
        "document.querySelectorAll('.options tbody tr').length]"
    )
    assert kept == ["find", "dark", True, 3]
    now = page.js("return document.querySelector('.race').getBoundingClientRect().top")
    assert abs(now - place) < 2, "what is looked at has moved"
    page.open(live)
    page.shows(".studies tbody", "150")
    page.until(lambda: page.all(".studies svg .line"), "a sparkline")


def test_lost_connection_is_reported_and_restored(page: Page, studies: sb.Studies) -> None:
    study = studies.create("pages", sample_instance(), 0.05)
    with running() as start:
        url = start(studies, every=0.05)
        page.open(url)
        page.shows(".studies tbody", "pages")
        page.js(CUT_OFF_ONCE, "/graph")
        page.js("location.hash = '#/study/pages'")
        page.shows("#link", "Live")
        page.shows(".verdict", "Nothing is told yet.")
    page.shows("#link", "Connection lost")
    work(study, 30)
    with running() as start:
        start(studies, every=0.05, port=int(url.rpartition(":")[2]))
        page.shows(".figure dd", "30")
        page.shows("#link", "Live")
        page.until(lambda: page.all(".graph .node"), "the graph, which was cut off")
        page.driver.get("about:blank")
    assert [each for each in page.complaints() if "ERR_" not in each] == []


def test_stop_withdraw_and_abandon_ask_first(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("pages", sample_instance(), 0.05)
    work(study, 40)
    page.open(at(live, "pages"))
    page.shows(".state", "running")
    study.ask(2, "server 2")  # nothing is told
    page.until(lambda: len(page.all("button[aria-label^='Abandon']")) == 2, "two tickets")
    page.click("button[aria-label='Withdraw cold, larger']")
    page.shows("dialog", "Withdraw this option?")
    page.click("dialog button", "Cancel")
    assert page.js("return document.activeElement.getAttribute('aria-label')") == "Withdraw cold, larger"
    page.click("button[aria-label='Withdraw cold, larger']")
    work(study, 30)  # the page changes under the dialog
    page.shows(".figure dd", "70")
    page.click("dialog button", "Withdraw")
    page.shows("#notices", "The option is withdrawn.")
    page.until(lambda: not page.all("dialog"), "no dialog")
    pending = len(study.pending())
    page.click("button[aria-label^='Abandon']")
    page.click("dialog button", "Abandon")
    page.shows("#notices", "The ticket is abandoned.")
    assert len(study.pending()) == pending - 1
    page.click("button", "Stop the study")
    page.shows("dialog", "Stop this study?")
    page.click("dialog button", "Stop the study")
    page.shows(".verdict", "Stopped by hand on ")
    page.shows(".state", "ended")
    assert studies.list()[0].state == "ended"
    page.until(lambda: not page.js("return document.querySelector('.actions .danger').matches(':enabled')"), "no stop")


def test_files_can_be_kept(page: Page, live: str, studies: sb.Studies, tmp_path: Path) -> None:
    work(studies.create("pages", sample_instance(), 0.05), 20)
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Page.setDownloadBehavior", behaviour)
    page.open(at(live, "pages"))
    page.shows(".state", "running")
    for button, file in (("Export", "pages.json"), ("Results", "pages.csv")):
        page.click("button", button)
        page.until(lambda file=file: (tmp_path / file).exists(), file)  # type: ignore[misc]
    assert (tmp_path / "pages.csv").read_text("utf-8").count("\n") == 21


def test_options_are_compared_with_a_control(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("pages", sample_instance(), 0.05)
    work(study, 60)
    page.open(at(live, "pages"))
    page.fill("#control", "plane")
    page.click("button", "Compare")
    page.shows(".refused", '"plane" is no label of an option of this study')
    page.fill("#control", "plain")
    page.js("document.querySelector('#control').form.requestSubmit()")  # a click may only close the list of labels
    page.shows(".comparisons", "dark, large")
    seen = study.status("plain")
    page.shows("[role=status].inset", f'Compared with "plain": {seen.compared}.')
    shown = page.js(
        "return [...document.querySelectorAll('.comparisons tbody tr')].map((row) => "
        "[...row.children].map((cell) => cell.textContent))"
    )
    wanted = [
        [arm.label, sure, difference, limits, lift, limits_of_lift]
        for arm, (_, _, difference, limits, lift, limits_of_lift, sure) in zip(
            seen.listed, comparisons_of(seen, seen.listed).rows, strict=True
        )
    ]
    assert shown == wanted
    page.click("button", "End the comparison")
    page.until(lambda: not page.all(".comparisons")[0].is_displayed(), "no table")
    assert [each for each in page.complaints() if "404" not in each] == []


def test_options_join(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("pages", sample_instance(), 0.05)
    page.open(at(live, "pages"))
    page.click("button", "Add options")
    page.click("button", "Show what changes")
    page.shows(".refused", "Choose or paste an instance or a table first.")
    page.click("button", "Start from the present options")
    page.until(lambda: page.js("return document.querySelector('#arms').value.includes('dark, larger')"), "labels")
    page.click("button", "Show what changes")
    page.shows(".refused", "The instance must hold new options after the 12 present ones, got none.")
    rows = [f'"{label}",{label.split(",")[0]}' for label in (*RATES, "red", "red, large")]
    page.fill("#arms", "\n".join(["page,colour", *rows]))
    page.click("label[for=alike-by]")
    page.fill("#step", "0.1")
    page.click("button", "Show what changes")
    page.shows(".plan", "14 options, 5 categories")
    assert study.status().results == 0 and len(study.status().arms) == 12, "it joined before it was confirmed"
    page.click("button", "Add 2 options")
    page.shows("#notices", "2 options joined (red, red, large)")
    page.until(lambda: len(page.all(".options tbody tr")) == 14, "fourteen options")
    assert [each for each in page.complaints() if "422" not in each] == []


def test_a_study_is_deleted_and_restored(page: Page, live: str, studies: sb.Studies, tmp_path: Path) -> None:
    study = studies.create("old pages", sample_instance(), 0.05)
    work(study, 40)
    file = tmp_path / "pages.json"
    file.write_text(json.dumps(export_study(study)), "utf-8")
    page.open(at(live, "old pages"))
    page.click("button", "Delete")
    page.shows("dialog", "is deleted with 40 results")
    page.fill("#typed", "old page")
    assert not page.find("dialog .danger").is_enabled()
    page.find("#typed").send_keys("s")
    page.click("dialog button", "Delete for good")
    page.shows("#notices", 'The study "old pages" is deleted, with 40 results.')
    page.shows("main .empty", "No studies yet")
    assert studies.list() == []
    page.click("main .empty button", "Import")
    page.click("dialog button", "Import")
    page.shows("dialog .refused", "Choose a file first.")
    page.find("#import-file").send_keys(str(file))
    page.fill("#import-name", "new pages")
    page.click("dialog button", "Import")
    page.shows("#notices", "The study is restored.")
    page.shows(".figure dd", "40")
    assert [each.name for each in studies.list()] == ["new pages"]


def test_tokens(page: Page, studies: sb.Studies, serve: Serve, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    reads, writes = tokens.create("read-only", "a visitor"), tokens.create("read-write")
    studies.create("pages", sample_instance(), 0.05)
    url = serve(studies, Access(tokens), every=0.05)
    page.open(at(url, "pages"))
    page.shows("h1", "Log in")
    page.fill("#token", "sbai_wrong")
    page.click("button", "Log in")
    page.shows(".refused", "This token is not valid")
    page.fill("#token", reads)
    page.click("button", "Log in")
    page.shows(".state", "running")
    page.shows("#session", "a visitor, read-only")
    page.shows("main", "This token may only read.")
    assert page.js("return [...document.querySelectorAll('.danger, .action button')].every((each) => each.disabled)")
    page.click("#session button", "Log out")
    page.shows("h1", "Log in")
    page.fill("#token", writes + "\n")
    page.until(lambda: page.js("return document.querySelector('.actions .danger')?.disabled === false"), "a button")
    assert writes not in page.js("return document.cookie + document.documentElement.outerHTML")
    tokens.revoke(tokens.tokens[1].id)
    page.js("location.hash = '#/'")
    page.shows("h1", "Log in")
    page.shows("#notices", "The token is no longer valid.")
    assert [each for each in page.complaints() if "401" not in each] == []


def test_hostile_labels_are_text(page: Page, live: str, studies: sb.Studies) -> None:
    graph = sb.Graph.from_edges(6, [(arm, arm + 1) for arm in range(5)])
    instance = sb.Instance(sb.Problem.bounded(graph, 0.5, 0.0, 1.0, 0.02, binary=True), labels=HOSTILE)
    name = '<b id="bold">name</b> "100 %"/../'
    study = studies.create(name, instance, 0.05)
    work(study, 60, {label: 0.2 + 0.1 * arm for arm, label in enumerate(HOSTILE)})
    study.ask(2, "<i>worker</i>")
    page.open(live)
    page.until(lambda: page.text(".studies .label") == name, "the name")
    page.click(".studies a")
    page.until(lambda: len(page.all(".options tbody tr")) == 6, "six options")
    page.until(lambda: page.all(".race path.line"), "lines")
    shown = page.js("return [...document.querySelectorAll('.options tbody .label')].map((each) => each.textContent)")
    assert sorted(shown) == sorted(HOSTILE)
    assert page.js("return document.querySelectorAll('main script, main img, main b, main i, #bold').length") == 0
    assert page.js("return document.title").startswith(f"{name}: running")
    for pixels in (1400, 800, 375):
        page.width(pixels)
        assert page.js("return document.documentElement.scrollWidth") <= pixels
    page.width(0)


def test_two_thousand_options(page: Page, live: str, studies: sb.Studies) -> None:
    labels = tuple(f"item {arm:04d}" for arm in range(2000))
    graph = sb.Graph.from_categories([f"category {arm % 20:02d}" for arm in range(2000)])
    instance = sb.Instance(sb.Problem.bounded(graph, np.full(20, 0.05), 0.0, 1.0, 0.02, binary=True), labels=labels)
    studies.create("catalogue", instance, 0.05)
    page.open(at(live, "catalogue"))
    page.until(lambda: len(page.all(".options tbody tr")) == 25, "a page of options")
    page.shows(".pager", "1 to 25 of 2,000")
    page.click(".pager button", "Next")
    page.shows(".pager", "26 to 50 of 2,000")
    page.fill("#find", "item 19")
    page.shows(".options tbody", "item 1900")
    page.shows(".tools .muted", "100 of 2,000 options")
    page.js("document.querySelector('#category').value = 'category 07'")
    page.js("document.querySelector('#category').dispatchEvent(new Event('change'))")
    page.shows(".tools .muted", "5 of 2,000 options")
    assert len(page.all(".graph circle")) == 20


def test_a_page_does_not_wait_for_what_takes_long(
    page: Page, live: str, studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create("slow", sample_instance(), 0.05)
    work(study, 60)
    done, remaining = threading.Event(), SpectralRace.remaining
    monkeypatch.setattr(
        SpectralRace, "remaining", lambda *arguments: (done.wait(60), remaining(*arguments))[1], raising=True
    )
    page.open(at(live, "slow"))
    page.shows(".figures", "being computed")
    page.shows(".verdict", "How many more trials are needed is being computed.")
    page.fill("#find", "a")
    page.shows("#announcer", "found")
    page.until(lambda: page.all(".race path.line"), "lines")
    done.set()
    page.until(lambda: "being computed" not in page.text(".verdict") + page.text(".figures"), "the forecast")


def test_a_withdrawn_option_no_longer_races_and_a_contradicted_study_takes_no_options(
    page: Page, live: str, studies: sb.Studies
) -> None:
    path = sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    study = studies.create("race", sb.Instance(sb.Problem(path, 1.0), labels=["one", "two", "three", "four"]), 0.05)
    tell(study, 60, [0.0, 0.1, 0.2, 0.3])
    best = study.status().best
    gone = next(label for label in ("one", "two") if label != best)
    study.withdraw(gone)
    page.open(at(live, "race"))
    page.until(lambda: page.all(".race .end-name"), "names of lines")
    assert gone not in [each.text for each in page.all(".race .end-name")]
    rough = studies.create("rough", sb.Instance(sb.Problem(path, 1e-4, sigma=0.1)), 0.05)
    tell(rough, 600, [0.0, 1.0, 0.0, 1.0])
    assert rough.status().state == "inconsistent"
    page.open(at(live, "rough"))
    page.shows(".verdict", "The data contradict R")
    assert page.js("return [...document.querySelectorAll('.actions button')].filter((b) => b.disabled).length") == 2


def tell(study: sb.Study, most: int, means: list[float]) -> None:
    """Tells results with these means, and noise of 0.1, until the study is over, at most so many."""
    rng = np.random.default_rng(1)
    told = 0
    while told < most and (tickets := study.ask(20)):
        told += study.tell_many([(each, means[each.arm] + 0.1 * rng.standard_normal()) for each in tickets])


def test_keyboard_alone(page: Page, live: str, studies: sb.Studies) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    study = studies.create("pages", sample_instance(), 0.05)
    work(study, 60)
    page.open(live)
    page.shows(".studies tbody", "pages")

    def press(*keys: str) -> None:
        for key in keys:
            ActionChains(page.driver, duration=0).send_keys(key).perform()

    def focused() -> str:
        return str(page.js("const at = document.activeElement; return at.textContent || at.id || at.tagName"))

    press(Keys.TAB)
    assert focused() == "Skip to the content"
    press(Keys.ENTER)
    assert page.js("return document.activeElement.id") == "main"
    press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    assert focused() == "pages"
    press(Keys.ENTER)
    page.until(lambda: page.all(".race path.line"), "lines")
    assert focused().startswith("pages")  # the title, so that screen readers say it
    page.js("document.querySelector('.race').focus()")
    press(Keys.ARROW_LEFT)
    page.shows(".race .tooltip", "after")
    page.shows("#announcer", "after")
    press(Keys.ESCAPE)
    assert page.js("return document.querySelector('.race .tooltip').hidden")
    page.js("document.querySelector('.actions .danger').focus()")
    press(Keys.ENTER)
    page.shows("dialog", "Stop this study?")
    assert focused() == "Cancel"
    described = "return document.getElementById(document.querySelector('dialog').getAttribute('aria-describedby'))"
    assert "It cannot be started again" in page.js(f"{described}.textContent")
    press(Keys.ESCAPE)
    page.until(lambda: focused() == "Stop the study", "the focus where it was")
    page.js("document.querySelector('#theme').focus()")
    before = page.js("return document.documentElement.dataset.theme")
    press(Keys.SPACE)
    assert page.js("return document.documentElement.dataset.theme") != before
    page.driver.refresh()
    assert page.js("return document.documentElement.dataset.theme") != before
    page.js("localStorage.clear()")


def test_the_example_for_javascript(page: Page, live: str, studies: sb.Studies) -> None:
    study = studies.create("sample", sample_instance(), 0.05)
    page.open(live)
    text = example("js").replace(SITE, live)
    start = "const done = arguments[0], token = 'sbai_...', outcomeOf = () => 1;"
    page.driver.execute_async_script(f"{start} (async () => {{ {text} }})().then(() => done(), done);")
    assert [each.outcome for each in study.recent()] == [1.0]


def test_study_that_is_not_there(page: Page, live: str, studies: sb.Studies) -> None:
    studies.create("pages", sample_instance(), 0.05)
    page.open(at(live, "pages"))
    page.shows(".state", "running")
    studies.delete("pages")
    page.shows(".verdict", 'The study "pages" was deleted.')
    page.open(at(live, "other"))
    page.shows(".verdict", 'There is no study "other".')
    assert [each for each in page.complaints() if "404" not in each] == []
