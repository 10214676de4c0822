"""Imports go downwards only, and the picture of the layers in the documentation shows them as they are.

`python tests/test_layers.py` draws that picture anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap

import pytest

import spectralbai

PACKAGE = Path(spectralbai.__file__).parent
LAYERS: list[dict[str, str]] = [
    {
        "cli": "the command line: parses, calls, prints",
    },
    {
        "service": "studies over HTTP, and the live page: routes, models, access, limits, events, metrics",
    },
    {
        "client": "studies of a service, with the interface of a study; needs the standard library only",
    },
    {
        "picking": "the best of some options on some items, by running a command or a function on pairs of the two",
    },
    {
        "study": "live experiments in a database: Studies, Study, upkeep of the kept state, ledger (all SQL), storage",
    },
    {
        "report": "documents about a study and how they look: status, report, tables, pictures, page",
    },
    {
        "journal": "what is written down of a study: its definition, tickets, results, openings",
    },
    {
        "plot": "pictures; matplotlib is used here only, takes results, returns Axes",
    },
    {
        "reproduction": "the experiment of the paper",
        "campaign": "many simulated runs, kept and resumed",
        "planning": "what to expect before any trial",
        "sklearn": "a search for scikit-learn: candidates of a grid on folds",
    },
    {
        "simulate": "one policy, one vector of means, one seed; and many, on an Executor",
    },
    {
        "tables": "outcomes of options on items that are known: read, checked, and what pairing is worth",
        "trace": "one run, step by step",
    },
    {
        "policy": "a sampling rule and stopping rules behind init, ask, tell, verdict and estimates",
    },
    {
        "tape": "the outcomes of a simulation, fixed by its seed",
    },
    {
        "drift": "how means change with time in a simulation",
    },
    {
        "sampling": "which arms next: one rule a file",
        "stopping": "when to stop: one rule a file, each with its own memory",
    },
    {
        "evidence": "what results say: blocks of pulls, what is seen, the outlook of a bettor, memories, intervals",
    },
    {
        "allocation": "the optimal allocation: one solver a file, one certificate, one result",
    },
    {
        "responder": "best responses",
        "estimation": "the constrained estimate",
    },
    {
        "spectral": "one decomposition for every best response; categories in closed form; compiled root searches",
    },
    {
        "instances": "generators of instances",
        "inputs": "what people give as tables: features, past results, counts, outcomes on items",
    },
    {
        "instance": "problem, means and labels, and their JSON form",
    },
    {
        "problem": "graph, R, noise, tolerance and items: the hypotheses, checked",
    },
    {
        "noise": "what outcomes are: one kind a file",
        "layout": "where to draw arms",
    },
    {
        "graph": "weights, Laplacian, smoothness, components, categories",
        "ties": "choices among equal values",
        "verdict": "what a stopping rule said",
        "items": "what options are tried on",
    },
    {
        "checks": "checks shared by the public boundary",
        "arrays": "types of arrays, and their checks",
        "compiled": "how kernels are compiled and kept",
        "threads": "linear algebra on one thread; work that is not waited for",
        "plugins": "modules of others, imported by name",
        "closing": "what holds connections until it is closed",
        "documents": "JSON of infinite and unknown numbers; columns; versions",
        "run_lengths": "long lists as JSON",
        "text": "numbers, times and tables as text for people",
    },
    {
        "errors": "the exceptions, by kind",
    },
]
"""The modules of the package and what each is for, top first; those of one layer never import each other."""
LEVEL = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}
PICTURE = Path(__file__).parents[1] / "docs" / "architecture.svg"
ROOT = ""
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """Yields the module of the package, or ROOT, that each import of `source` reaches, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for path in paths:
            first, *rest = path.split(".")
            if first == "spectralbai":
                yield rest[0] if rest and (rest[0] in LEVEL or len(rest) > 1) else ROOT


def offences(module: str, source: str) -> list[str]:
    """Returns the imports that `module` may not make."""
    return [
        target or "spectralbai"
        for target in imported(source)
        if (module != "cli" if target == ROOT else target != module and LEVEL[target] >= LEVEL[module])
    ]


@pytest.mark.parametrize("file", [file for file in FILES if file not in ("__init__.py", "__main__.py")])
def test_a_module_imports_only_from_layers_below(file: str) -> None:
    module = file.split("/")[0].removesuffix(".py")
    assert module in LEVEL, f"{module} has no layer: add it to LAYERS"
    assert offences(module, (PACKAGE / file).read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("graph", "from spectralbai.problem import Problem"),
        ("graph", "def f():\n    from spectralbai import problem"),
        ("graph", "import spectralbai.problem as p"),
        ("graph", "from spectralbai import Problem"),
        ("responder", "from spectralbai.estimation import estimate"),
        ("estimation", "from spectralbai.responder import Responder"),
    ],
)
def test_upward_sideways_and_root_imports_are_noticed(module: str, source: str) -> None:
    assert len(offences(module, source)) == 1


def picture() -> str:
    """Returns the layers as an SVG picture: a row of boxes for each, the top layer first."""
    width, gap, line = 1000, 10, 17
    rows: list[str] = []
    top = gap
    for layer in LAYERS:
        columns = min(len(layer), 4)
        box = (width - gap * (columns + 1)) / columns
        words = {name: wrap(text, int(box / 7.6)) for name, text in layer.items()}
        height = 34 + line * max(len(text) for text in words.values())
        for place, (name, text) in enumerate(words.items()):
            row, column = divmod(place, columns)
            left, upper = gap + column * (box + gap), top + row * (height + gap)
            rows.append(f'<rect x="{left:g}" y="{upper:g}" width="{box:g}" height="{height:g}" rx="6"/>')
            rows.append(f'<text class="name" x="{left + 10:g}" y="{upper + 20:g}">{name}</text>')
            for number, each in enumerate(text):
                below = upper + 39 + line * number
                rows.append(f'<text x="{left + 10:g}" y="{below:g}">{escape(each)}</text>')
        top += (height + gap) * -(-len(layer) // columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:g}" role="img">\n'
        "<title>The layers of spectralbai; imports go downwards only</title>\n"
        "<style>rect { fill: #f2f7fb; stroke: #0072B2; } text { font: 13px sans-serif; fill: #222; }"
        " .name { font-weight: 700; font-size: 14px; }</style>\n" + "\n".join(rows) + "\n</svg>\n"
    )


def test_the_picture_in_the_documentation_shows_the_layers() -> None:
    assert PICTURE.read_text("utf-8") == picture(), "draw it anew: python tests/test_layers.py"


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
