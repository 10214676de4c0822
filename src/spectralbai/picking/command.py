"""Trials by a command: each runs as a process of its own, without a shell, and its last line is the outcome."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress

from spectralbai.errors import InvalidInput
from spectralbai.picking.entries import Entry
from spectralbai.picking.template import Template

GRACE = 1.0
"""Seconds that are waited for the output of a process that was killed."""


class TrialFailed(Exception):
    """A trial has no outcome; the text says why."""


class Command:
    """A command as a score: called with an option and an item, it returns the outcome that the command prints."""

    def __init__(self, template: Template, timeout: float | None = None) -> None:
        program = template.words[0]
        if "{" not in program and shutil.which(program) is None:
            where = "is no program that can be run" if os.path.exists(program) else "is not found"
            raise InvalidInput(
                f'the command "{program}" {where}; give its path, such as ./score, or make it executable'
            )
        self._template = template
        self._timeout = timeout
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self, option: Entry, item: Entry) -> float:
        words = self._template.filled(option, item)
        try:
            stdout, stderr, code = self._run(words)
        except OSError as error:
            raise TrialFailed(f"it cannot be run: {error.strerror}") from None
        if code:
            said = _last_line(stderr)
            raise TrialFailed(f"exit code {code}" + (f": {said}" if said else ""))
        line = _last_line(stdout)
        try:
            outcome = float(line.replace("_", "?"))
        except ValueError:
            outcome = math.nan
        if not math.isfinite(outcome):
            got = f"ended with the line {line[:80]!r}" if line else "printed nothing"
            raise TrialFailed(f"it {got}, which is no number" if line else f"it {got}")
        return outcome

    def stop(self) -> None:
        """Kills what is running; later trials fail."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)

    def _run(self, words: list[str]) -> tuple[bytes, bytes, int]:
        """Returns what a process printed, and its exit code."""
        with self._lock:
            if self._stopped:
                raise TrialFailed("it was stopped")
            # A session of its own, so that Ctrl-C reaches it through `stop` only, and its children end with it.
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            stdout, stderr = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=GRACE)
            raise TrialFailed(f"it took longer than {self._timeout:g} s") from None
        finally:
            with self._lock:
                self._running.discard(process)
        return stdout, stderr, process.returncode


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_line(output: bytes) -> str:
    """Returns the last line that is not blank; an empty string if there is none."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
