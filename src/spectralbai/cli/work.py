"""Long computations: the processes or the cluster that do them, the progress bar, and the message about compiling."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from spectralbai import __version__, plugins
from spectralbai.compiled import compiling, on_compiling
from spectralbai.errors import SpectralBAIError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from multiprocessing.connection import Connection

Seed = Annotated[int, Option(help="The same seed gives the same numbers, whatever --jobs.")]
Jobs = Annotated[int | None, Option(help="Processes that simulate; one per core if not given.", metavar="N")]

CONNECTING = 10
"""Seconds within which a scheduler must answer."""
BEFORE_BAR = 1.0
"""Seconds of work after which a progress bar is shown."""


def check_jobs(jobs: int | None) -> int:
    """Returns a number of processes: as given, or one per core that this process may use, as far as Python knows."""
    if jobs is None:
        return getattr(os, "process_cpu_count", os.cpu_count)() or 1  # process_cpu_count is new in Python 3.13
    from spectralbai.checks import check_integer

    return check_integer("--jobs", jobs, 1)


@contextmanager
def processes(jobs: int) -> Iterator[Executor | None]:
    """Yields an executor with that many processes, or None for one process; an interrupt ends them at once."""
    if jobs == 1:
        yield None
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    threading.Thread(target=_hear, args=(reader,), daemon=True).start()
    executor = ProcessPoolExecutor(jobs, context, initializer=_follow_parent, initargs=(writer, plugins.loaded()))
    # Ctrl-C reaches all processes of the group, but only the parent shall handle it: workers start with it blocked.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for _ in range(jobs):  # start the workers now, while the caller prepares their tasks
        executor.submit(_get_ready)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        yield executor
    except BaseException as error:
        # The command ends now. Threads of the executor may fail because its workers are gone, and nobody needs to know.
        threading.excepthook = lambda _: None
        for worker in multiprocessing.active_children():
            worker.terminate()
        # Waits for those threads: Python, which wakes them when it ends, must not find that they close their pipes.
        executor.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise SpectralBAIError(
                "a simulating process was killed, perhaps for want of memory; try again with fewer --jobs"
            ) from None
        raise
    finally:
        writer.close()  # the thread ends with the last worker
    executor.shutdown(wait=False)  # the workers end by themselves, while the caller shows the results


def _get_ready() -> None:
    """Imports the modules that simulations need."""
    import spectralbai.simulate  # noqa: F401


def _hear(reader: Connection) -> None:
    """Passes on the messages of workers that they compile, until all workers have ended."""
    with suppress(EOFError, OSError):
        while True:
            compiling(reader.recv())


def _follow_parent(writer: Connection, modules: tuple[str, ...]) -> None:
    """Makes a worker end when its parent ends, even if the parent is killed, and imports the modules that it imported.

    When it compiles, it does not print a message, but tells the parent through `writer`.
    """
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    def tell(kept: bool) -> None:
        with suppress(OSError):
            writer.send(kept)

    on_compiling(tell)
    threading.Thread(target=watch, daemon=True).start()
    with suppress(SpectralBAIError):  # the task that needs them says what is wrong
        plugins.load(modules)


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yields (executor, threads of all workers) of the dask cluster whose scheduler listens at `address`."""
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ModuleNotFoundError:
        raise SpectralBAIError(
            "--cluster needs dask.distributed, not installed here; run: pip install 'spectralbai[cluster]'"
        ) from None
    try:
        resolve_address(address)  # refuses an invalid address before a client starts a thread that complains at exit
        client: Any = Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SpectralBAIError(
            f"--cluster: no dask scheduler answers at {address} ({reason}); start it with: dask scheduler"
        ) from None

    def version_there() -> str | None:  # nested, so that dask sends its code: it must run without spectralbai
        try:
            from spectralbai import __version__
        except ModuleNotFoundError:
            return None
        return __version__

    with client:
        threads = client.nthreads()
        if not threads:
            raise SpectralBAIError(
                f"--cluster: the scheduler at {address} has no workers; start one with: dask worker {address}"
            )
        for worker, version in client.run(version_there).items():
            if version != __version__:
                found = "no spectralbai" if version is None else f"spectralbai {version}"
                raise SpectralBAIError(
                    f"--cluster: the worker {worker} has {found}; install spectralbai {__version__} there"
                )
        yield client.get_executor(retries=3), sum(threads.values())


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], object]]:
    """Yields a function to call with (done, total), if these are known. After the first second, a progress bar is shown
    on stderr, if that is a terminal."""
    counts = [0, 0]
    ended = threading.Event()
    bar = threading.Thread(target=_show_bar, args=(what, counts, ended), daemon=True)

    def update(done: int, total: int) -> None:
        counts[:] = done, total

    if sys.stderr is not None and sys.stderr.isatty():
        bar.start()
    try:
        yield update
    finally:
        ended.set()
        if bar.is_alive():
            bar.join()


def _show_bar(what: str, counts: list[int], ended: threading.Event) -> None:
    """Shows a progress bar of these counts until the work has ended; shows nothing if it ends soon."""
    if ended.wait(BEFORE_BAR):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        while not ended.wait(0.1):
            done, total = counts
            if total:
                bar.update(task, completed=done, total=total, description=f"{what} {done}/{total}")


@contextmanager
def saying_that_it_compiles() -> Iterator[None]:
    """Prints one line on stderr when kernels begin to be compiled, in this process or in those of `processes`."""
    first = threading.Lock()

    def say(kept: bool) -> None:
        if first.acquire(blocking=False):  # never released, so that only one line is printed
            how_often = "later commands find them kept"
            if not kept:
                how_often = "every command does, since there is no place to keep them: set NUMBA_CACHE_DIR to a folder"
            words = f"Compiling the numerical kernels, which takes up to a minute; {how_often} ..."
            print(words, file=sys.stderr, flush=True)

    on_compiling(say)
    try:
        yield
    finally:
        on_compiling(None)
