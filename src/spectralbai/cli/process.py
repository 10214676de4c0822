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
"""Seconds that a command which checks for Ctrl-C between its steps has to end by itself."""
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
"""Sent to a terminal if a progress bar was interrupted: clears the line and shows the cursor."""

_asked, _looked_for, _said = threading.Event(), threading.Event(), threading.Event()
_ending = threading.Lock()
"""The thread that holds this lock may end the process, or keep it from ending."""
_owned = threading.Event()
"""Set if the whole process belongs to the command, so that its signals and streams may be changed."""


def own_process() -> None:
    """Prepares the process for the whole command.

    Compiled code may compute for minutes, during which Python raises no KeyboardInterrupt; and one that is raised while
    the result of compiled code is converted crashes the process. So none is raised: a thread waits for Ctrl-C and ends
    the process. This is safe: databases undo what was not committed, files are replaced completely or not at all, and
    workers end with their parent. The thread can run because compiled code releases Python's lock.
    """
    _owned.set()
    _fill_closed_streams()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()
    # Multiprocessing starts a process that cleans up at the end; these options suppress its warnings.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


def _watch(woken: int) -> None:
    while signal.SIGINT not in os.read(woken, 1):
        pass
    _asked.set()
    if _looked_for.is_set():
        time.sleep(PATIENCE)
    while not _ending.acquire(timeout=0.05):
        if select.select([woken], [], [], 0)[0] and signal.SIGINT in os.read(woken, 1):
            break  # Ctrl-C was pressed twice: do not wait any longer
    if not _said.is_set():
        clear = SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, f"{clear}interrupted\n".encode())  # not through sys.stderr, which the main thread may hold
    os._exit(INTERRUPTED)


def between_steps() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed; called about twice a second, where a command can end cleanly."""
    _looked_for.set()
    if _asked.is_set():
        raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Yields a function. After it is called, Ctrl-C takes effect only at the end of the context, where
    KeyboardInterrupt is raised. Pressing Ctrl-C twice ends the process at once."""
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
    if asked:  # the lock is kept, so that the main thread ends the process and prints the message
        raise KeyboardInterrupt


def say_interrupted(*details: object) -> None:
    """Prints on stderr, in one line, that the command was interrupted."""
    _said.set()
    print(": ".join(("interrupted", *map(str, details))), file=sys.stderr, flush=True)


def _fill_closed_streams() -> None:
    """Connects closed standard streams to the null device, so that no file that is opened later takes their numbers. If
    stdout is closed, raises an error before any work is done."""
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
    """Makes Ctrl-C end the process silently from now on, because its work is done."""
    if _owned.is_set():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def discard_output() -> None:
    """Sends the rest of stdout to the null device: otherwise Python would try to write it at exit, and complain."""
    if _owned.is_set():
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
