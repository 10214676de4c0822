"""Status and report of thousands of arms: categories first, then the top, and a page that opens quickly."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.cli.study import common as printing
from spectralbai.cli.tables import print_plain
from spectralbai.instances import catalogue
from spectralbai.report.by_category import most_lacking, summarised
from spectralbai.report.status import MANY_ARMS, TOP
from spectralbai.report.tables import TextTable
from spectralbai.study import ArmStatus, Status
from spectralbai.text.html import PAGE_ROWS, paged, script

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NASTY = "</script><b>x</b>"
N_CATEGORIES, SIZE = 4, 50


def made(tolerance: float = 0.0) -> sb.Instance:
    """Returns 201 arms in 5 categories, the last arm, alone in its category, far ahead."""
    instance = catalogue(N_CATEGORIES, SIZE, spread=0.005, sigma=0.3, tolerance=tolerance, seed=2)
    labels = [f"{NASTY if arm == 3 else 'item'} {arm}" for arm in range(instance.problem.n_arms)]
    return sb.Instance(instance.problem, instance.mu, labels)


def fill(study: sb.Study, most: int | None = None) -> None:
    mu, rng, told = made().mu, np.random.default_rng(1), 0
    assert mu is not None
    while (most is None or told < most) and (tickets := study.ask(20)):
        study.tell_many((ticket, float(rng.normal(mu[ticket.arm], 0.3))) for ticket in tickets)
        told += len(tickets)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The storage of three studies: under way, decided, and without categories."""
    url = f"sqlite:///{tmp_path_factory.mktemp('many') / 's.db'}"
    for name, most in (("under way", 60), ("decided", None)):
        with sb.Study.create(name, made(), 0.05, url) as study:
            fill(study, most)
    flat = sb.Instance(sb.Problem(sb.Graph.from_edges(300, []), math.inf, 0.3))
    with sb.Study.create("flat", flat, 0.05, url) as study:
        study.add([str(arm) for arm in range(300)], np.linspace(0, 1, 300).tolist(), "pilot")
        while study.status().best is None:
            study.tell_many((ticket, ticket.arm / 299) for ticket in study.ask(100))
    return url


def status_of(name: str, url: str, control: str | None = None) -> Status:
    with sb.Study.open(name, url) as study:
        return study.status(control)


def report_of(name: str, url: str, control: str | None = None) -> Any:
    with sb.Study.open(name, url) as study:
        return study.report(control)


def test_categories_add_up_what_their_arms_say(url: str) -> None:
    for name in ("under way", "decided"):
        status = status_of(name, url)
        assert status.categories is not None and status.candidates is not None
        assert sorted(each.name for each in status.categories) == ["alone", *(f"category {c}" for c in range(4))]
        assert sum(each.results for each in status.categories) == status.results
        assert sum(each.share for each in status.categories) == pytest.approx(1)
        assert sum(each.candidates or 0 for each in status.categories) == len(status.candidates)
        for each in status.categories:
            arms = [arm for arm in status.arms if arm.category == each.name]
            rivals = [arm for arm in arms if arm.label != status.best]
            assert each.arms == len(arms)
            assert each.estimate == max(arm.estimate or 0.0 for arm in arms)
            assert each.lacking == (max(arm.lacking or 0.0 for arm in rivals) if rivals else None)
            if each.rival is not None:
                (rival,) = (arm for arm in arms if arm.label == each.rival)
                assert rival.lacking == each.lacking
                if each.candidates:
                    assert status.account_of(each) == status.account(rival)


def test_the_category_of_the_arm_recommended_is_first_and_those_that_are_out_say_since_when(url: str) -> None:
    status = status_of("decided", url)
    assert status.categories is not None and (status.state, status.best) == ("decided", "item 200")
    first, *rest = status.categories
    assert (first.name, first.best, first.rival, status.account_of(first)) == ("alone", "item 200", None, "leads")
    for each in rest:
        last = max(arm.out_at or 0 for arm in status.arms if arm.category == each.name)
        assert (each.candidates, each.out_at, status.account_of(each)) == (0, last, f"out at {last:,}")
    estimates = [each.estimate or 0.0 for each in rest]
    assert estimates == sorted(estimates, reverse=True)


def test_categories_with_candidates_stand_before_those_without() -> None:
    def arm(label: str, category: str, estimate: float, lacking: float) -> ArmStatus:
        return ArmStatus(
            label,
            1,
            0.25,
            0,
            estimate,
            None,
            estimate,
            None,
            None,
            0.1,
            None,
            lacking,
            0,
            None,
            False,
            None,
            None,
            category,
        )

    listed = [arm("a", "x", 0.9, 1.0), arm("b", "y", 0.5, 3.0), arm("c", "y", 0.4, 2.0), arm("d", "z", 0.7, 0.0)]
    found = summarised(listed, "a", frozenset("abc"))
    assert [(each.name, each.candidates) for each in found] == [("x", 1), ("y", 2), ("z", 0)]
    assert [(each.rival, each.lacking) for each in found] == [(None, None), ("b", 3.0), ("d", 0.0)]
    assert found[1].omega == pytest.approx(0.2)


def test_the_top_has_the_arm_recommended_the_likeliest_and_the_control(url: str) -> None:
    status = status_of("under way", url, "item 7")
    assert status.candidates is not None
    top = status.top
    assert len(top) == TOP + 1 and top[0].label == status.best and top[-1].label == "item 7"
    likely = sorted((a for a in status.arms if a.label in status.candidates), key=lambda a: -(a.estimate or 0.0))
    wanted = [arm.estimate for arm in likely if arm.label != status.best][: TOP - 1]
    assert [arm.estimate for arm in top[1:-1]] == wanted
    assert status.about(top) == (
        "21 of 201 options: the recommended one, those that may be best, then the others, by their estimates; and the "
        "control."
    )


def test_arms_are_chosen_by_their_category_or_a_part_of_their_label(url: str) -> None:
    status = status_of("under way", url)
    assert {arm.label for arm in status.select("category 1")} == {f"item {arm}" for arm in range(50, 100)}
    assert {arm.label for arm in status.select(search="ITEM 19")} == {
        "item 19",
        *(f"item {a}" for a in range(190, 200)),
    }
    assert {arm.label for arm in status.select("category 0", "9")} == {f"item {a}" for a in (9, 19, 29, 39, 49)}
    assert status.select(search="no such thing") == ()
    with pytest.raises(sb.InvalidInput, match='has no category "category 11"; did you mean "category 1"'):
        status.select("category 11")
    with pytest.raises(sb.InvalidInput, match="has no categories; look for a part of a label"):
        status_of("flat", url).select("x")


def test_the_terminal_shows_categories_then_the_top_and_how_to_see_the_rest(
    url: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECTRALBAI_STORAGE", url)
    shown = run("study", "status", "under way").stdout
    lines = shown.splitlines()
    assert lines.index(next(line for line in lines if line.startswith("category"))) < lines.index(
        next(line for line in lines if line.startswith("option "))
    )
    assert sum(line.startswith("category ") for line in lines) == N_CATEGORIES + 1
    assert sum(line.startswith(("item ", "</script>")) for line in lines) == TOP
    assert lines[-1] == (
        "20 of 201 options: the recommended one, those that may be best, then the others, by their estimates. To see "
        "others: --category NAME, --search TEXT or --all"
    )
    every = run("study", "status", "under way", "--all").stdout.splitlines()
    assert sum(line.startswith(("item ", "</script>")) for line in every) == 201 and "--all" not in every[-1]
    one = run("study", "status", "under way", "--category", "category 2").stdout.splitlines()
    assert sum(line.startswith("item ") for line in one) == 50
    assert sum(line.startswith("category ") for line in one) == 2  # the heading, and this one
    assert one[-1] == "50 of 201 options; to see all: --all"
    found = run("study", "status", "under way", "--search", "script").stdout.splitlines()
    assert sum(line.startswith("</script>") for line in found) == 1
    assert 'no option has "nothing" in its label' in run("study", "status", "under way", "--search", "nothing").stdout
    assert "--category" not in run("study", "status", "flat").stdout.splitlines()[-1]
    refused = run("study", "status", "under way", "--all", "--search", "x")
    assert (refused.code, refused.stdout) == (1, "") and "leave it out" in refused.stderr


def test_json_has_the_arms_that_are_shown_and_says_how_many_are_not(
    url: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECTRALBAI_STORAGE", url)

    def document(*options: str) -> Any:
        return json.loads(run("study", "status", *options, "--json").stdout)

    top = document("under way")
    assert (len(top["arms"]), top["arms_not_shown"], len(top["categories"])) == (TOP, 201 - TOP, 5)
    assert {arm["category"] for arm in top["arms"]} <= {each["name"] for each in top["categories"]}
    every = document("under way", "--all")
    assert [arm["label"] for arm in every["arms"]] == [arm.label for arm in status_of("under way", url).arms]
    assert every["arms_not_shown"] == 0
    one = document("under way", "--category", "alone")
    assert [arm["label"] for arm in one["arms"]] == ["item 200"]
    assert len(document("flat")["arms"]) == 300 and document("flat")["categories"] is None


def test_a_long_table_looks_as_a_short_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    table = TextTable(("arm", "results", "account"), (("a long one", "1", "out at 20"), ("日本", "1,000", "")))
    print_plain(printing.filled(table))
    fitted = capsys.readouterr().out
    monkeypatch.setattr(printing, "MOST_FITTED", 1)
    print_plain(printing.filled(table))
    assert capsys.readouterr().out == fitted


def test_a_notebook_shows_categories_and_the_top(url: str) -> None:
    shown = status_of("under way", url)._repr_html_()
    assert shown.count("<table") == 2 and shown.index("category 2") < shown.index("raw mean")
    assert shown.count("<tr>") == 1 + 5 + 1 + TOP
    assert "20 of 201 options: the recommended one" in shown and NASTY not in shown


def embedded(page: str) -> list[Any]:
    return [json.loads(each) for each in re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)]


def cells(data: Any, row: int) -> list[str]:
    return [
        column[row] if isinstance(column, list) else column["different"][column["which"][row]]
        for column in data["columns"]
    ]


@pytest.mark.usefixtures("undrawn")
def test_the_page_holds_every_arm_and_shows_the_first_of_them_without_its_script(url: str) -> None:
    report = report_of("under way", url, "item 7")
    page = report.as_html()
    arms, against = embedded(page)
    listed = report.status.listed
    assert arms["total"] == against["total"] == 201
    assert [cells(arms, row)[0].removesuffix(" *") for row in range(201)] == [arm.label for arm in listed]
    assert [arms["kinds"]["different"][which] for which in arms["kinds"]["which"]] == [arm.category for arm in listed]
    assert cells(against, 0)[-1] in ("better", "open")
    static = page[page.index("<h2>Arms</h2>") :]
    assert static[: static.index("</table>")].count("<tr>") == 1 + PAGE_ROWS
    assert page.index("<h2>Categories</h2>") < page.index("<h2>Arms</h2>")
    assert NASTY not in page and page.count("</script>") == 3  # two of data, and the one that reads them
    assert not re.search(r"url\(|@import|https?:", page)


def test_pictures_and_checks_are_by_category(url: str) -> None:
    report = report_of("decided", url)
    captions = re.findall("<figcaption>(.*?)</figcaption>", report.as_html())
    assert [caption.split(".")[0] for caption in captions] == [
        "Estimated mean outcomes of the best option of each category",
        "How the trials were shared",
        "The race, a line per category: all of its options are out when the least account against them reaches the "
        "line",
    ]
    document = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert len(document["status"]["arms"]) == 201
    for check, kept in zip(document["verdicts"], report.verdicts, strict=True):
        assert "candidates" not in check
        assert sum(each["candidates"] for each in check["by_category"].values()) == len(kept.candidates)
        assert max(each["lacking"] for each in check["by_category"].values()) == max(kept.lacking)


def test_many_arms_without_categories_have_pictures_of_the_top(url: str) -> None:
    page = report_of("flat", url).as_html()
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert "for 60 of 300 options" in captions[0] and len(captions) == 3
    assert embedded(page)[0]["kinds"] is None and "<select>" not in page and "<h2>Categories</h2>" not in page


@pytest.mark.usefixtures("undrawn")
def test_few_arms_in_categories_are_all_shown(tmp_path: Path) -> None:
    graph = sb.Graph.from_categories(list("aabbb"))
    few = sb.Instance(sb.Problem(graph, [0.01, 0.01], sigma=0.1))
    with sb.Study.create("x", few, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        for _ in range(5):
            study.tell_many((ticket, [0.1, 0.1, 0.9, 0.9, 0.9][ticket.arm]) for ticket in study.ask(5))
        status, page = study.status(), study.report().as_html()
    assert len(status.top) == 5 <= MANY_ARMS and status.categories is not None
    assert "<script" not in page and page.count("<table") - page.count('class="pairs"') == 2


def test_most_lacking_is_the_largest_of_each_category_where_there_is_an_account() -> None:
    lacking = np.array([[1.0, 3.0, np.nan, np.nan], [np.nan, 0.0, 2.0, np.nan]])
    most = most_lacking(lacking, np.array([0, 0, 1, 2]))
    assert np.array_equal(most, [[3.0, np.nan, np.nan], [0.0, 2.0, np.nan]], equal_nan=True)


CASES = (
    ("", "item 0", 25, "1 to 25 of 2,000"),
    ("next();next();", "item 50", 25, "51 to 75 of 2,000"),
    ("next();back();", "item 0", 25, "1 to 25 of 2,000"),
    ('find(" ITEM 199 ");', "item 199", 11, "1 to 11 of 11"),
    ('next();find("item 19");next();', "item 1914", 25, "26 to 50 of 111"),
    ('choose("odd");', "item 1", 25, "1 to 25 of 1,000"),
    ('choose("odd");find("item 20");', "item 201", 5, "1 to 5 of 5"),
    ('find("nothing");', None, 0, "none found"),
)
ACTS = """<script>
const [b, n] = document.querySelectorAll("button"), s = document.querySelector("input");
const k = document.querySelector("select"), seen = [];
const next = () => n.click(), back = () => b.click();
const find = text => { s.value = text; s.dispatchEvent(new Event("input")); };
const choose = text => {
  k.value = [...k.options].find(each => each.text === text).value; k.dispatchEvent(new Event("change"));
};
const look = () => {
  const lines = [...document.querySelectorAll("tbody tr")], where = document.querySelector(".where").textContent;
  seen.push([lines.length ? lines[0].cells[0].textContent : null, lines.length, where]);
};
"""


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_the_page_turns_and_searches(tmp_path: Path) -> None:
    rows = [(f"item {row}", str(row % 3)) for row in range(2000)]
    table = paged(("arm", "n"), rows, ["even", "odd"] * 1000, "kind")
    steps = "".join(f'find("");choose("all");{each}look();\n' for each, *_ in CASES)
    end = 'document.body.innerHTML = ""; document.body.textContent = "seen" + JSON.stringify(seen);</script>'
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{table}{script()}{ACTS}{steps}{end}", "utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run([*command, "--dump-dom", f"file://{page}"], capture_output=True, text=True, timeout=120)
    found = re.search(r"seen(\[\[.*?\]\])", done.stdout)
    assert found is not None and json.loads(found[1]) == [list(wanted) for _, *wanted in CASES]


def test_withdrawn_arms_a_tolerance_and_the_least_mean_are_shown_by_category_too(tmp_path: Path) -> None:
    instance = made(tolerance=0.1)
    mu, rng = instance.mu, np.random.default_rng(3)
    assert mu is not None
    url = f"sqlite:///{tmp_path / 's.db'}"
    with sb.Study.create("x", sb.Instance(instance.problem, None, instance.labels), 0.05, url, goal="min") as study:
        for _ in range(4):
            study.tell_many((ticket, float(rng.normal(-mu[ticket.arm], 0.3))) for ticket in study.ask(20))
        study.withdraw("item 200")
        status, report = study.status(), study.report("item 60")
        page = report.as_html()
    assert status.categories is not None
    (alone,) = (each for each in status.categories if each.name == "alone")
    assert (alone.withdrawn, alone.candidates, status.account_of(alone)) == (1, 0, "withdrawn")
    assert status.categories[0].best == status.best == status.top[0].label and status.categories[-1] == alone
    estimates = [each.estimate or 0.0 for each in status.categories[:-1] if each.candidates]
    assert estimates[1:] == sorted(estimates[1:])  # the least is the best
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert "The dashed line is the control" in captions[0] and "all of its options are beaten" in captions[2]
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_catalogue_without_results_has_categories_and_no_pictures(tmp_path: Path) -> None:
    with sb.Study.create("x", made(), 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        status, page = study.status(), study.report().as_html()
    assert status.categories is not None and {each.best for each in status.categories} == {None}
    assert "<img" not in page and embedded(page)[0]["total"] == 201
    assert {status.account_of(each) for each in status.categories} == {"-"}
