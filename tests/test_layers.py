"""Imports go downwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spectralbai

PACKAGE = Path(spectralbai.__file__).parent
# Bottom first; modules on one line never import each other.
LAYERS = [
    {"errors"},
    {"checks", "compiled", "threads", "software", "decimals", "html", "runs"},
    {"graph", "memory"},
    {"noise", "blocks", "layout"},
    {"problem"},
    {"instance"},
    {"instances", "history", "records"},
    {"features"},
    {"from_tables"},
    {"spectral"},
    {"oracle", "estimation"},
    {"allocation"},
    {"intervals", "evidence"},
    {"outlook"},
    {"sampling", "stopping"},
    {"policy"},
    {"simulate"},
    {"reproduction", "campaign", "planning"},
    {"plot"},
    {"study"},
    {"client"},
    {"service"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
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


@pytest.mark.parametrize("file", [file for file in FILES if file != "__init__.py"])
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
        ("oracle", "from spectralbai.estimation import estimate"),
        ("estimation", "from spectralbai.oracle import Oracle"),
    ],
)
def test_upward_sideways_and_root_imports_are_noticed(module: str, source: str) -> None:
    assert len(offences(module, source)) == 1
