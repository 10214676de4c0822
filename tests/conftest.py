"""What several test files use."""

from __future__ import annotations

import gc
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest
import typer.main
from hypothesis import settings

from spectralbai.cli import main
from tests import warm as warm_module
from verification.postgres import postgres

pytest.register_assert_rewrite("tests.contracts")  # pytest does it only for files named test_*
settings.register_profile("fixed", derandomize=True, database=None)  # the same examples every time
settings.load_profile("fixed")
command_of = cache(typer.main.get_command)  # it takes 50 ms, and the tests run over a thousand commands


SHARED = "/dev/shm"
"""Where Linux keeps files in memory."""


def pytest_configure(config: pytest.Config) -> None:
    """Sets up what every process of the tests needs."""
    keep_files_in_memory()
    keep_bytecode()
    compile_for_all(config)


def pytest_collection_finish() -> None:
    """Has the garbage collector pass over the hundreds of thousands of objects that imports have made: they stay. It
    then looks less often, which takes a twentieth off the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def keep_files_in_memory() -> None:
    """Keeps temporary files in memory, if there is room, so that databases do not wait for a disk. Processes that
    the tests kill lose no more than they would on a disk."""
    if "TMPDIR" in os.environ or not os.access(SHARED, os.W_OK):
        return
    if shutil.disk_usage(SHARED).free > 2**30 and not os.statvfs(SHARED).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = SHARED
        tempfile.tempdir = None  # so that it is read from the environment again


def keep_bytecode() -> None:
    """Has Python keep the bytecode of modules beside them, where compiled kernels are kept anyway: otherwise each of
    the hundreds of processes that the tests start would make it anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def compile_for_all(config: pytest.Config) -> None:
    """Has the process that starts the workers, and one beside it, compile what tests need, where nothing is compiled
    yet: both workers would compile it otherwise, at the same time, before their first test."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        with subprocess.Popen([sys.executable, "-c", "from tests import warm; warm.load_rest()"], cwd=config.rootpath):
            warm_module.load()


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def quiet() -> Callable[[str], str]:
    """Returns a function that removes from stderr the line which says that kernels are being compiled. It is printed
    on the first use only, in whichever test that is."""
    return lambda stderr: re.sub(r"^Compiling the numerical kernels, .*\n", "", stderr, count=1, flags=re.MULTILINE)


@pytest.fixture(scope="session")
def server() -> Iterator[Callable[[], str]]:
    """Makes databases on a PostgreSQL server that runs as long as the tests."""
    with postgres() as database:
        yield database


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What to put before `spectralbai ...` or `python ...` to have it run as a process that has everything loaded: for
    tests of streams and of scripts, which are not about how a process starts."""
    address = tmp_path_factory.mktemp("warm") / "socket"
    command = [sys.executable, warm_module.__file__, str(address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        yield [sys.executable, "-S", "-E", "-c", warm_module.CLIENT, str(address)]


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: Callable[[str], str]
) -> Callable[..., Result]:
    """Returns a function that runs the command line in this process."""

    def run_main(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(typer.main, "get_command", command_of)
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
        assert isinstance(exit_.value.code, int)
        stdout, stderr = capsys.readouterr()
        return Result(exit_.value.code, stdout, quiet(stderr))

    return run_main
