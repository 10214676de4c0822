"""Compiled functions: where they are kept, and that a command says when it has to compile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

from spectralbai.compiled import njit, on_compiling

KERNEL = """
from spectralbai.compiled import njit

@njit
def double(x):
    return 2 * x

def doubled(x):
    return double(x)
"""
COMMAND = """
import sys
from spectralbai import cli
from spectralbai.cli.work import processes

@cli.app.command()
def double(jobs: int) -> None:
    from kernel import doubled

    with processes(jobs) as executor:
        calls = [doubled(2.0)] if executor is None else executor.map(doubled, [2.0] * jobs)
        print(*calls)

if __name__ == "__main__":
    cli.main(sys.argv[1:])
"""
LIBRARY = "import spectralbai, kernel; print(kernel.doubled(2.0))"


def test_a_function_is_compiled_even_if_no_folder_can_hold_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, asked = numba.njit, []

    def no_cache(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*arguments, **options)

    monkeypatch.setattr(numba, "njit", no_cache)

    @njit
    def double(x: float) -> float:
        return 2 * x

    assert double(4.0) == 8.0
    assert asked[0] == {"cache": True, "nogil": True} and len(asked) > 1


def test_other_threads_go_on_while_compiled_code_runs() -> None:
    @njit
    def spin(steps: int) -> float:
        total = 0.0
        for step in range(steps):
            total += (step % 7) ** 0.5
        return total

    spin(1)
    ticks: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.002):
            ticks.append(time.monotonic())

    other = threading.Thread(target=tick)
    other.start()
    start = time.monotonic()
    spin(50_000_000)
    end = time.monotonic()
    ended.set()
    other.join()
    assert len([at for at in ticks if start < at < end]) > 3


def test_compiled_code_is_kept() -> None:
    @njit
    def triple(x: float) -> float:
        return 3 * x

    assert triple(1.0) == 3.0
    assert triple.stats.cache_path  # type: ignore[attr-defined]


@pytest.fixture
def heard() -> Iterator[list[bool]]:
    """Yields the messages about compiling."""
    said: list[bool] = []
    on_compiling(said.append)
    yield said
    on_compiling(None)


def test_a_message_says_when_compiling_begins_but_not_when_code_is_loaded(heard: list[bool]) -> None:
    @njit
    def quadruple(x: float) -> float:
        return 4 * x

    assert heard == [] and quadruple(1.0) == 4.0
    first = list(heard)
    assert quadruple(1.0) == 4.0 and heard == first and len(first) <= 1
    if first:  # else an earlier session of the tests has compiled it
        assert first == [True] and quadruple.stats.cache_misses  # type: ignore[attr-defined]


def test_compiling_where_nothing_can_be_kept_says_so(heard: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = numba.njit

    def no_cache(*arguments: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*arguments, **options)

    monkeypatch.setattr(numba, "njit", no_cache)

    @njit
    def halve(x: float) -> float:
        return x / 2

    assert halve(1.0) == 0.5 and heard == [False]


def test_a_command_says_once_that_it_compiles_and_nothing_when_the_code_is_there(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "command.py").write_text(COMMAND)
    first, second = (in_folder(tmp_path, "command.py", "double", "1") for _ in range(2))
    assert first.stdout == second.stdout == "4.0\n"
    assert first.stderr.startswith("Compiling the numerical kernels, ") and first.stderr.count("\n") == 1
    assert second.stderr == ""


def test_the_parent_says_once_that_workers_compile(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "command.py").write_text(COMMAND)
    done = in_folder(tmp_path, "command.py", "double", "2")  # in which the parent itself compiles nothing
    assert done.stdout == "4.0 4.0\n"
    assert done.stderr.startswith("Compiling the numerical kernels, ") and done.stderr.count("\n") == 1


def test_the_library_says_nothing_when_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    done = in_folder(tmp_path, "-c", LIBRARY)
    assert (done.stdout, done.stderr) == ("4.0\n", "") and list((tmp_path / "cache").rglob("*.nbi"))


def in_folder(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, with a cache of its own there."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
