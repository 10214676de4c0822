"""The public surface."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spectralbai


def names_seen_by_type_checkers() -> set[str]:
    tree = ast.parse(Path(spectralbai.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_all_lists_every_public_name_once() -> None:
    assert sorted(spectralbai.__all__) == sorted(names_seen_by_type_checkers() | {"__version__"})
    assert dir(spectralbai) == sorted(spectralbai.__all__)


@pytest.mark.parametrize("name", spectralbai.__all__)
def test_every_public_name_resolves_to_the_thing_of_that_name(name: str) -> None:
    value = getattr(spectralbai, name)
    if name != "__version__":
        assert value.__name__.split(".")[-1] == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'spectralbai' has no attribute 'Grpah'"):
        _ = spectralbai.Grpah  # type: ignore[attr-defined]  # the point of the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, spectralbai; print({'numpy', 'scipy', 'numba'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "set()"
    )
