"""What several test files use."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import settings

from spectralbai.cli import main

settings.register_profile("fixed", derandomize=True, database=None)  # the same examples every time
settings.load_profile("fixed")


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Returns a function that runs the command line in this process."""

    def run_main(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
        assert isinstance(exit_.value.code, int)
        return Result(exit_.value.code, *capsys.readouterr())

    return run_main
