"""Pictures and tables for papers: formats, widths, and LaTeX."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from spectralbai import Graph, Instance, Problem, SpectralRace, SpectralTaS, instances, plot, simulate
from spectralbai.campaign import Cell, RunRow
from spectralbai.planning import Budget
from spectralbai.planning.budget import Chance
from spectralbai.text.latex import escaped, tabular
from tests.campaign.campaigns import HEAD, PATH, TAS, simulated
from tests.contracts.commands import INSTANCE
from tests.test_plot import ROWS

COLUMN = 3.25
TEXT = HEAD.replace("runs = 3", "runs = 2") + PATH + TAS.replace("\n", '\nname = "50 % of_$x$ & more"\n', 1)
BEGINNINGS = {"png": b"\x89PNG\r\n", "pdf": b"%PDF-", "svg": b"<?xml "}
SIZES = {"png": rb"IHDR\x00\x00\x03\xcf", "pdf": rb"/MediaBox \[ 0 0 234 ", "svg": rb'<svg [^>]*width="234pt"'}
"""How files say their width, 3.25 inches: 975 dots, or 234 points."""
POLICIES = (
    "spectral-race",
    "track-and-stop",
    "a policy with a name that is much too long for one line of a legend",
    "d",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    simulated(folder, TEXT)
    return folder


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_the_format_follows_the_suffix_and_a_picture_replaces_its_own_kind(
    run: Callable[..., Any], results: Path, tmp_path: Path, form: str
) -> None:
    out = tmp_path / f"box.{form}"
    arguments = ("plot", str(results), "--out", str(out), "--width", str(COLUMN))
    assert run(*arguments).code == 0
    first = out.read_bytes()
    assert first.startswith(BEGINNINGS[form])
    assert run(*arguments).code == 0 and out.read_bytes() == first, "the same bytes"
    assert b"CreationDate" not in first and b"<dc:date>" not in first
    out.write_bytes(first.replace(b"spectralbai", b"another-one"))
    refused = run(*arguments)
    assert refused.code == 1 and "is not a picture by spectralbai" in refused.stderr
    assert re.search(SIZES[form], first)


def test_other_formats_and_widths_are_refused(run: Callable[..., Any], results: Path) -> None:
    for options, clue in (
        (("--out", "box.jpg"), "--out must end in .png, .pdf or .svg, which says the format, got box.jpg"),
        (("--width", "0.5"), "--width must be between 2 and 40 inches, got 0.5"),
        (("--width", "nan"), "--width must be between"),
    ):
        refused = run("plot", str(results), *options)
        assert refused.code == 1 and clue in refused.stderr and refused.stderr.count("\n") == 1


EDGES = ("instance", "--edges", "edges.csv", "--R", "1", "--sigma", "1")
BUDGET = ("plan", "instance.json", "--budget", "20", "--runs", "1", "--jobs", "1")
REPRODUCE = ("reproduce", "--runs", "1", "--jobs", "1")
WIDTH = ("--width", str(COLUMN))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with what commands read; the paper's experiment is not simulated again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spectralbai.reproduction.reproduce", lambda *_: ROWS)
    (tmp_path / "edges.csv").write_text("one,two\na,b\nb,c\n")
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "picture"),
    [
        ((*EDGES, "--out", "x.json"), "x.png"),
        ((*BUDGET, "--plot", "x.PDF"), "x.PDF"),
        ((*REPRODUCE, "--out", "paper", "--picture", "x.svg"), "paper/x.svg"),
    ],
)
def test_every_command_that_draws_has_a_width(
    run: Callable[..., Any], folder: Path, arguments: tuple[str, ...], picture: str
) -> None:
    done = run(*arguments, *WIDTH)
    assert done.code == 0, done.stderr
    form = picture[-3:].lower()
    content = (folder / picture).read_bytes()
    assert content.startswith(BEGINNINGS[form]) and re.search(SIZES[form], content)


@pytest.mark.parametrize(
    ("arguments", "clue"),
    [
        ((*EDGES, "--out", "new.json", "--width", "1"), "--width must be between 2 and 40 inches, got 1"),
        ((*BUDGET, "--plot", "new.jpg"), "--plot must end in .png, .pdf or .svg, which says the format, got new.jpg"),
        ((*BUDGET, "--plot", "new.png", "--width", "99"), "--width must be between 2 and 40 inches, got 99"),
        ((*BUDGET, *WIDTH), "--width is that of a picture; give --plot too"),
        ((*REPRODUCE, "--out", "new", "--picture", "new.eps"), "--picture must end in .png, .pdf or .svg"),
        ((*REPRODUCE, "--out", "new", "--width", "inf"), "--width must be between 2 and 40 inches, got inf"),
    ],
)
def test_they_refuse_other_formats_and_widths_before_any_work(
    run: Callable[..., Any], folder: Path, arguments: tuple[str, ...], clue: str
) -> None:
    refused = run(*arguments)
    assert refused.code == 1 and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert not list(folder.glob("new*"))


def _rows() -> list[RunRow]:
    row = RunRow("graph", "", 0.1, 0, 0, "betting", True, "decided", 100, 0, True, (60, 20, 20), 0.1)
    rules = ("betting", "a rule with a long name")
    changes = [
        {"policy": name, "run": k, "tau": 1000 + 90 * k, "rule": rules[k % 2]} for name in POLICIES for k in (1, 3)
    ]
    return [RunRow(**{**vars(row), **change}) for change in changes]


def _cells() -> list[Cell]:
    cell = dict.fromkeys(Cell.__dataclass_fields__, 100.0) | {"instance": "graph", "runs": 4, "truncated": 1}
    return [
        Cell(**cell | {"policy": name, "rule": name[:9], "proved": False, "R": R})  # type: ignore[arg-type]  # a test
        for name in POLICIES
        for R in (0.0001234, 0.0002345, 0.001234, 0.01234, 0.12345, float("inf"))
    ]


def _budget() -> Budget:
    chances = [Chance(0.01 * 2**k, 20, 4 + 2 * k) for k in range(8)]
    problem = Problem(Graph.from_edges(3, [(0, 1)]), 1.0, tolerance=chances[2].tolerance)
    return Budget(Instance(problem, [0.3, 0.2, 0.1]), 123_456, 0.05, "guess", tuple(chances), (2, 3))


def _trace(rule: str) -> Axes:
    problem = Problem(Graph.from_edges(3, [(1, 2)]), 0.01)
    policy = SpectralRace(problem, 0.05) if rule == "betting" else SpectralTaS(problem, 0.05, rule)
    names = ["a page with a long name", "another one with a name that is longer", "a third"]
    return plot.plot_trace(simulate.trace(policy, [2.4, 0.5, 0.6], seed=1), names)


PICTURES: dict[str, Callable[[], Axes]] = {
    "box": lambda: plot.plot_tau_by_policy(_rows(), 500.0),
    "R": lambda: plot.plot_tau_against(_cells(), "R"),
    "proportions": lambda: plot.plot_proportions(_rows(), (0.5, 0.2, 0.3), ("one", "two", "a third")),
    "graph": lambda: plot.plot_graph(instances.cliques(3, 4), [1 / 13] * 13),
    "karate club": lambda: plot.plot_graph(instances.karate_club()),
    "budget": lambda: plot.plot_budget(_budget()),
    "race": lambda: _trace("betting"),
    "statistic": lambda: _trace("paper"),
    "reproduction": lambda: plot.plot_reproduction(ROWS, 0.01),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_in_a_column_of_a_paper_all_text_is_inside_and_large_enough(kind: str) -> None:
    with plot.of_width(COLUMN):
        ax = PICTURES[kind]()
        plot.as_picture(ax, "png", "a title that says in many words which instance of which campaign this is")
    figure = ax.figure.canvas.figure
    assert figure.get_size_inches()[0] == COLUMN
    hidden = [  # labels of ticks out of sight
        label
        for labels, (low, high), axis in (
            (ax.get_xticklabels(), ax.get_xlim(), 0),
            (ax.get_yticklabels(), ax.get_ylim(), 1),
        )
        for label in labels
        if not low <= label.get_position()[axis] <= high
    ]
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip() and text not in hidden:
            assert 6 <= float(text.get_fontsize()) <= 8, text
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text
    assert ax.get_window_extent().height >= 0.55 * COLUMN * figure.dpi, "room for what is shown"
    assert ax.get_window_extent().width >= 0.55 * COLUMN * figure.dpi
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    for left, right in pairwise(labels):
        assert left.get_rotation() or left.get_window_extent().x1 < right.get_window_extent().x0, "labels touch"


@pytest.mark.parametrize("kind", ["graph", "karate club"])
def test_labels_of_arms_in_a_column_do_not_touch(kind: str) -> None:
    with plot.of_width(COLUMN):
        ax = PICTURES[kind]()
        plot.as_picture(ax, "png", "a title that says in many words which instance of which campaign this is")
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) > 10
    assert not [(one, two) for one, two in combinations(boxes, 2) if one.overlaps(two)]


def test_without_a_width_nothing_changes() -> None:
    with plot.of_width(None):
        ax = PICTURES["R"]()
    figure = ax.figure.canvas.figure
    assert figure.get_size_inches().tolist() == [7.2, 5.8] and ax.xaxis.label.get_fontsize() == 10


def test_a_table_for_latex_is_escaped_and_whole(run: Callable[..., Any], results: Path) -> None:
    printed = run("compare", str(results), "--latex").stdout
    lines = [line for line in printed.splitlines() if not line.startswith("%")]
    assert lines[0] == r"\begin{tabular}{llrrrrrrr}" and lines[-1] == r"\end{tabular}"
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\multicolumn{9}{l}{\emph{short path}} \\" in lines
    rows = [line for line in lines if line.startswith("50")]
    assert len(rows) == 2 and all(row.startswith(r"50 \% of\_\$x\$ \& more & betting & 0.") for row in rows)
    assert all(len(re.findall(r"(?<!\\)&", row)) == 8 and r" $\pm$ " in row and row.endswith(r" \\") for row in rows)
    both = run("compare", str(results), "--latex", "--json")
    assert both.code == 1 and "--json and --latex are both given; keep one" in both.stderr


def test_every_special_sign_is_escaped() -> None:
    assert escaped("a&b%c$d#e_f{g}") == r"a\&b\%c\$d\#e\_f\{g\}"
    assert escaped("~^\\<>") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}$<$$>$"
    assert escaped("[a|b]") == r"{[}a\textbar{}b]"
    assert escaped("gk16 †\n± é") == r"gk16 $^\dagger$ $\pm$ é"
    assert tabular(("a", "$b$"), {"x_1": [("c", "50 %")]}).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a & $b$ \\",
        r"\midrule",
        r"\multicolumn{2}{l}{\emph{x\_1}} \\",
        r"c & 50 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
