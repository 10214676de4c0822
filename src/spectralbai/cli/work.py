"""Long work: the processes or the cluster that do it, the bar that shows it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spectralbai import __version__
from spectralbai.errors import SpectralBAIError

if TYPE_CHECKING:
    from concurrent.futures import Executor


def cores() -> int:
    """Returns the number of cores this process may use, as far as Python tells."""
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1  # Python 3.13 counts those this process may use


@contextmanager
def processes(jobs: int) -> Iterator[Executor | None]:
    """Yields an executor of that many processes, or None for one; an interrupt ends them at once."""
    if jobs == 1:
        yield None
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_follow_parent)
    # Ctrl-C reaches the whole group, and is the parent's to deal with: workers are born deaf to it.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for _ in range(jobs):  # the workers start now, while the caller prepares what it wants of them
        executor.submit(_get_ready)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        yield executor
    except BaseException as error:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            raise SpectralBAIError(
                "a simulating process was killed, perhaps for want of memory; try again with fewer --jobs"
            ) from None
        raise
    executor.shutdown(wait=False)  # the workers end by themselves, while the caller shows what they found


def _get_ready() -> None:
    """Imports what simulations need."""
    import spectralbai.simulate  # noqa: F401


def _follow_parent() -> None:
    """Makes a worker end with its parent, even one killed."""
    import multiprocessing
    import threading
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yields (executor, threads of all workers) of the dask cluster whose scheduler listens at `address`."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise SpectralBAIError(
            "--cluster needs dask.distributed, not installed here; run: pip install 'spectralbai[cluster]'"
        ) from None
    try:
        client: Any = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SpectralBAIError(
            f"--cluster: no dask scheduler answers at {address} ({reason}); start it with: dask scheduler"
        ) from None
    with client:
        threads = client.nthreads()
        if not threads:
            raise SpectralBAIError(
                f"--cluster: the scheduler at {address} has no workers; start one with: dask worker {address}"
            )
        for worker, version in client.run(_version_there).items():
            if version != __version__:
                found = "no spectralbai" if version is None else f"spectralbai {version}"
                raise SpectralBAIError(
                    f"--cluster: the worker {worker} has {found}; install spectralbai {__version__} there"
                )
        yield client.get_executor(retries=3), sum(threads.values())


def _version_there() -> str | None:
    try:
        from spectralbai import __version__
    except ModuleNotFoundError:
        return None
    return __version__


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], object]]:
    """Yields what to call with (done, total); the bar, with the time left, is on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
