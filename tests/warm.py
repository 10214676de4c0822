"""The command line as a server that has loaded everything: each command runs in a process forked from it.

For many commands, most of whose time would go into importing. `python warm.py ADDRESS` serves at a Unix socket until
its standard input ends; `python -c CLIENT ADDRESS spectralbai ARGUMENT...` is a command, with the streams, the folder,
the environment and the exit code of its own process; with `python ARGUMENT...` it is Python that has imported all this.
"""

from __future__ import annotations

import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache

import typer.main

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [json.dumps([os.getcwd(), dict(os.environ), *sys.argv[2:]]).encode()], [0, 1, 2])
    sys.exit((server.recv(1) or b"?")[0])
"""
INSTANCE = '{"format": "spectralbai-instance/3", "n_arms": 2, "edges": [], "mu": [1, 0], "R": 1.0, "sigma": 1.0}'


def answer(connection: socket.socket) -> int:
    """Runs one command; returns its exit code."""
    request, streams, _, _ = socket.recv_fds(connection, 2**18, 3)
    folder, environment, *arguments = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    try:
        {"spectralbai": command, "python": python}[arguments[0]](arguments[1:])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def command(arguments: list[str]) -> None:
    """Runs the command line."""
    from spectralbai.cli import main

    sys.argv = ["spectralbai", *arguments]
    main()


def python(arguments: list[str]) -> None:
    """Runs Python as its own command line would: `-c CODE`, a file, or `-` for standard input."""
    first, *others = arguments
    if first not in ("-", "-c"):
        sys.argv, sys.path[0] = arguments, os.path.dirname(first)
        runpy.run_path(first, run_name="__main__")
        return
    code = others.pop(0) if first == "-c" else sys.stdin.read()
    sys.argv, sys.path[0] = [first, *others], ""
    exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})


def load() -> None:
    """Loads what commands need, compiled code too."""
    import spectralbai as sb
    import spectralbai.plot
    import spectralbai.study

    problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01)
    for policy in (sb.SpectralRace(problem, 0.1), sb.SpectralTaS(problem, 0.1, stopping="gk16")):
        sb.simulate.run(policy, [2.0, 0.5, 0.6], seed=0)


def load_rest() -> None:
    """Loads the compiled code that `load` does not: of catalogues, and of the algorithm as printed."""
    import spectralbai as sb

    categories = sb.Problem(sb.Graph.from_categories(["a", "a", "b"]), [0.01, 0.01])
    sb.solve_allocation(categories, [0.5, 0.6, 0.9], 1e-2, solver="catalogue")
    printed = sb.SpectralTaS.as_printed(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01), 0.1, iterations=3)
    sb.simulate.run(printed, [2.0, 0.5, 0.6], seed=0, max_samples=50)


def rehearse() -> None:
    """Runs a few commands, so that what a command loads or prepares at its first use is there before others begin."""
    from spectralbai.cli import main

    typer.main.get_command = cache(typer.main.get_command)
    with tempfile.TemporaryDirectory() as folder:
        file, storage = f"{folder}/instance.json", ("--storage", f"sqlite:///{folder}/studies.db")
        with open(file, "w") as written:
            written.write(INSTANCE)
        for arguments in (
            ("solve", file),
            ("plan", file, "--quick"),
            ("study", "create", "x", file, *storage),
            ("study", "ask", "x", *storage),
            ("study", "status", "x", *storage),
            ("study", "list", "--json", *storage),
        ):
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said, suppress(SystemExit):
                main(list(arguments))
            assert "error" not in said.getvalue(), said.getvalue()
    assert threading.active_count() == 1, "only this thread would go on in a process that is forked"


def serve(address: str) -> None:
    """Takes commands until standard input ends, as it does with the process at its other end."""
    load()
    rehearse()
    gc.freeze()  # a collection in a forked process would otherwise look at everything, and so copy all of the memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for commands that have ended
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                code = 1
                try:
                    code = answer(connection)
                finally:
                    connection.send(bytes([code]))
                    os._exit(code)
            connection.close()


if __name__ == "__main__":
    serve(sys.argv[1])
