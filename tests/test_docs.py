"""The pages, the examples of public names and the notebook are right. Nothing here needs mkdocs."""

from __future__ import annotations

import doctest
import json
import posixpath
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
import spectralbai.campaign
import spectralbai.picking
import spectralbai.plot
import spectralbai.plugins
import spectralbai.policy
import spectralbai.sampling
import spectralbai.sklearn
import spectralbai.stopping
import spectralbai.study
from docs.tools.notebook import run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
)
MODULES = {
    "instances": sb.instances.KINDS,
    "simulate": ("Run", "Trace", "replay", "run", "trace", "watch", "watch_many", "watch_table"),
    "picking": sb.picking.__all__,
    "sklearn": sb.sklearn.__all__,
    "study": sb.study.__all__,
}
PUBLIC = sorted(
    {name for name in sb.__all__ if name != "__version__" and name not in MODULES}
    | {f"{module}.{name}" for module, names in MODULES.items() for name in names if name not in sb.__all__}
)
"""The names that the reference has with examples, without the name of the package."""
EXTENDED = {
    *(f"campaign.{name}" for name in sb.campaign.__all__),
    *(f"plot.{name}" for name in sb.plot.__all__),
    *(f"sampling.{name}" for name in sb.sampling.__all__ if name.endswith(("Sampling", "Rule", "Tracker", "View"))),
    *("stopping.StoppingRule", "stopping.Reading", "stopping.RULES", "policy.POLICIES", "policy.Policy"),
    *("noise.Noise", "noise.register_noise", "graph.register_geometry", "allocation.Solver", "plugins.load"),
}
"""Other names that the reference has: what one extends, and what one calls in programs."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def text_of(page: Path) -> str:
    """Returns the Markdown of a page, without its code."""
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Returns the anchors of the headings of a page and of the public names that it describes."""
    raw = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", raw, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^::: (\S+)$", raw, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = ROOT / posixpath.normpath(posixpath.join(page.parent.relative_to(ROOT).as_posix(), path))
        linked = linked if path else page
        assert linked.is_file(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.relative_to(ROOT)} links to {target}, which has no such anchor"


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = Counter(re.findall(r"(?:- |: )([\w/]+\.md)$", navigation, re.MULTILINE))
    there = {str(page.relative_to(DOCS).with_suffix(".md")) for page in PAGES if page.is_relative_to(DOCS)}
    assert listed == dict.fromkeys({*there, "index.md", "contributing.md", "changelog.md"}, 1)


@pytest.mark.parametrize("page", [page for page in PAGES if page.suffix == ".md"], ids=lambda page: page.name)
def test_lines_of_prose_fit(page: Path) -> None:
    not_prose = r"^```.*?^```$|^\$\$.*?\$\$$|^(?:\||!\[|    ).*?$"  # code, equations, tables, pictures
    prose = re.sub(not_prose, "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120] == []


def test_pictures_are_small() -> None:
    large = [path.name for path in DOCS.rglob("*.png") if path.stat().st_size > 250_000]
    assert not large


def test_nothing_is_loaded_from_the_web() -> None:
    """Vendored scripts aside, which name addresses in comments: what pages load is named in mkdocs.yml."""
    assert "://" not in (ROOT / "mkdocs.yml").read_text("utf-8")
    for path in (DOCS / "assets").glob("*.*"):
        assert "://" not in path.read_text("utf-8"), path.name


def test_equations_have_numbers_of_their_own() -> None:
    theory = (DOCS / "theory.md").read_text("utf-8")
    tags = re.findall(r"\\tag\{([\d.]+)\}", theory)
    assert len(tags) > 100 and len(set(tags)) == len(tags)
    assert theory.count("$$") % 2 == 0


def test_equations_and_sections_that_are_cited_are_there() -> None:
    theory = (DOCS / "theory.md").read_text("utf-8")
    there = set(re.findall(r"\\tag\{([\d.]+)\}| \((\d+\.\d+)\)$|^## (\d+)\.", theory, re.MULTILINE))
    numbers = {number for found_at in there for number in found_at if number}
    sources = [*(ROOT / "src").rglob("*.py"), *(page for page in PAGES if page.name != "theory.md")]
    cited = re.compile(r"\btheory(?:\]\([^)]*\))?,? (?:section )?(\d+(?:\.\d+)?)\b")
    missing = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in sources
        for number in cited.findall(path.read_text("utf-8"))
        if number not in numbers
    }
    assert not missing


def test_the_citations_are_of_this_version() -> None:
    assert f"\nversion: {sb.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"  version = {{{sb.__version__}}}\n" in (ROOT / "README.md").read_text("utf-8")


def test_the_tests_of_what_the_paper_gets_wrong_are_there() -> None:
    section = (DOCS / "theory.md").read_text("utf-8").split("\n## 11. ")[1].split("\n## ")[0]
    rows = re.findall(r"^\| E\d+ \|.*$", section, re.MULTILINE)
    assert len(rows) >= 14
    for row in rows:
        cited = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row.split("|")[-2])
        assert cited, f"no test is named: {row}"
        for file, name in cited:
            assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text("utf-8"), f"{file} has no {name}"


def test_the_files_that_a_trial_passes_through_exist() -> None:
    steps = re.split(r"^\d+\. ", (DOCS / "one_trial.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    found_in = [re.findall(r"`(src/[^`]+)`", step) for step in steps]
    assert len(steps) >= 10 and all(found_in), "every step names a file"
    named = [name for names in found_in for name in names]
    missing = sorted({name for name in named if not (ROOT / name).is_file()})
    assert not missing, f"docs/one_trial.md names files that do not exist: {', '.join(missing)}; say where they are now"


def test_every_public_name_is_in_the_reference_once() -> None:
    pages = "".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    described = Counter(re.findall(r"^::: spectralbai\.(\S+)$", pages, re.MULTILINE))
    missing = sorted({*PUBLIC, *EXTENDED} - described.keys())
    assert not missing, f"docs/api/ has no line '::: spectralbai.NAME' for {', '.join(missing)}"
    assert max(described.values()) == 1
    for name in described:
        found(name)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_is_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # studies are kept in the working directory
    (test,) = doctest.DocTestFinder(recurse=False).find(found(name), name, globs={})
    assert test.examples, f"spectralbai.{name} has no example in its docstring"
    failed, _ = doctest.DocTestRunner(verbose=False).run(test)
    assert not failed, capsys.readouterr().out


def found(name: str) -> Any:
    """Returns what a name in the reference stands for."""
    value: Any = sb
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.ipynb")), ids=lambda page: page.stem)
def test_a_notebook_shows_what_its_cells_print(page: Path) -> None:
    kept = json.loads(page.read_text("utf-8"))
    for before, after in zip(kept["cells"], run(kept)["cells"], strict=True):
        assert before.get("execution_count") == after.get("execution_count")
        assert_same(before.get("outputs", []), after.get("outputs", []))


def assert_same(kept: list[dict[str, Any]], made: list[dict[str, Any]]) -> None:
    """Compares outputs: words exactly, numbers to 1 %, and of pictures only that they are there."""
    assert [each["output_type"] for each in kept] == [each["output_type"] for each in made]
    for before, after in zip(kept, made, strict=True):
        assert before.get("data", {}).keys() == after.get("data", {}).keys()
        texts = [
            each.get("text") or each["data"].get("text/html", each["data"]["text/plain"]) for each in (before, after)
        ]
        shown, printed = ("".join(text) for text in texts)
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), "run: python docs/tools/notebook.py FILE"
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-2)
