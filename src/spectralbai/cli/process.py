"""The command as a process: Ctrl-C ends it within a second, and closed standard streams do no harm."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spectralbai.errors import SpectralBAIError

INTERRUPTED, NO_READER = 130, 141
"""Exit codes that shells give for SIGINT and SIGPIPE."""
PATIENCE = 0.8
"""Seconds in which a command that looks for Ctrl-C between its steps has to end by itself."""
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
"""What a terminal is told where a bar was cut off: clear the line, show the cursor."""

_asked, _looked_for, _said = threading.Event(), threading.Event(), threading.Event()
_ending = threading.Lock()
"""Whoever has it may end the process, or keep it from ending."""


def own_process() -> None:
    """Prepares the process for the whole command.

    Compiled code may compute for minutes, during which Python raises no KeyboardInterrupt; one that is raised while its
    result is converted crashes the process. So none is: a thread waits for Ctrl-C and ends the process. Databases undo
    what was not committed, files are put in place whole, and workers end with their parent. The thread can run since
    compiled code lets go of Python's lock.
    """
    _fill_closed_streams()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()
    # The process that clears up after multiprocessing need not say so; it is started with these.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


def _watch(woken: int) -> None:
    while signal.SIGINT not in os.read(woken, 1):
        pass
    _asked.set()
    if _looked_for.is_set():
        time.sleep(PATIENCE)
    while not _ending.acquire(timeout=0.05):
        if select.select([woken], [], [], 0)[0] and signal.SIGINT in os.read(woken, 1):
            break  # Ctrl-C twice: whoever pressed it does not want to wait
    if not _said.is_set():
        clear = SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, f"{clear}interrupted\n".encode())  # not through sys.stderr, which the main thread may hold
    os._exit(INTERRUPTED)


def between_steps() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed: called twice a second or so, where a command can end in order."""
    _looked_for.set()
    if _asked.is_set():
        raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Yields what to call when, from here on, Ctrl-C has to wait for the end of the context, where KeyboardInterrupt is
    raised then. Ctrl-C twice ends the process all the same."""
    holds = False

    def hold() -> None:
        nonlocal holds
        holds = holds or _ending.acquire()

    try:
        yield hold
    finally:
        asked = holds and _asked.is_set()
        if holds and not asked:
            _ending.release()
    if asked:  # kept: the main thread ends the process, and says so
        raise KeyboardInterrupt


def say_interrupted(*details: object) -> None:
    """Says so on stderr, in one line."""
    _said.set()
    print(": ".join(("interrupted", *map(str, details))), file=sys.stderr, flush=True)


def _fill_closed_streams() -> None:
    """Makes closed standard streams lead nowhere, so that no file that is opened takes their place; an answer that
    nobody gets is refused before any work."""
    closed = sys.stdout is None
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(null)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)
    if closed:
        sys.stdout = open(1, "w", closefd=False)
        raise SpectralBAIError("standard output is closed; send it somewhere, such as > /dev/null")


def restore_default() -> None:
    """Lets Ctrl-C end the process without a word from here on: its work is done."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def discard_output() -> None:
    """Lets what is still to be written to stdout lead nowhere: Python would try again when it ends, and complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
