"""The command as a process: Ctrl-C, closed streams, and the bar that shows long work."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import spectralbai as sb

COMMAND = [sys.executable, "-m", "spectralbai"]


def instance(folder: Path, n_arms: int) -> Path:
    """Writes an instance that takes long to solve."""
    mu = np.sin(6 * np.arange(n_arms) / n_arms) + 0.01 * np.random.default_rng(0).standard_normal(n_arms)
    edges = [[k, k + 1, 1.0] for k in range(n_arms - 1)]
    file = folder / "many.json"
    document = {"format": "spectralbai-instance/3", "n_arms": n_arms, "edges": edges, "mu": mu.tolist(), "sigma": 1.0}
    file.write_text(json.dumps({**document, "R": 1.2 * float(np.square(np.diff(mu)).sum())}))
    return file


def used(group: int) -> float:
    """Returns the seconds of processor time that the processes of a group have used so far."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            fields = file.read_text().rpartition(")")[2].split()
            ticks += (int(fields[2]) == group) * (int(fields[11]) + int(fields[12]))
    return ticks / os.sysconf("SC_CLK_TCK")


def interrupted(arguments: list[str], after: float) -> tuple[float, int, bytes, bytes]:
    """Returns how long a command took to end after Ctrl-C, its exit code, and what it printed. Ctrl-C comes when the
    command has used so many seconds of processor time, which says how far it is on a slow machine too."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        while used(process.pid) < after:
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.05)
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers get it too
        stdout, stderr = process.communicate(timeout=30)
        return time.monotonic() - start, process.returncode, stdout, stderr
    finally:
        process.kill()


# Soon: while it starts; later: while compiled code runs.
@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("solve", 0.5),
        ("solve", 1.6),
        ("plan", 1.7),
        ("plan with workers", 1.2),
        ("plan with workers", 4.0),
    ],
)
def test_an_interrupt_ends_compiled_code_within_a_second_in_one_line(
    tmp_path: Path, command: str, after: float
) -> None:
    file = instance(tmp_path, 2000 if command == "solve" else 500)
    more = ["--jobs", "2"] if "workers" in command else []
    seconds, code, stdout, stderr = interrupted([command.split()[0], str(file), *more], after)
    assert (code, stdout, stderr) == (130, b"", b"interrupted\n")
    assert seconds < 1.5  # a second, on a machine that others use too


def test_an_interrupted_campaign_of_long_runs_ends_within_a_second(tmp_path: Path) -> None:
    instance(tmp_path, 500)
    head = 'format = "spectralbai-campaign/2"\nruns = 9\ndeltas = [0.01]\n[[instances]]\nfile = "many.json"\n'
    (tmp_path / "campaign.toml").write_text(head + '[[policies]]\nkind = "spectral-tas"\n')
    for jobs in ("1", "2"):
        arguments = ["simulate", str(tmp_path / "campaign.toml"), "--out", str(tmp_path / "out"), "--jobs", jobs]
        seconds, code, stdout, stderr = interrupted(arguments, 2.1 if jobs == "1" else 5.0)
        assert (code, stdout) == (130, b"") and stderr.splitlines()[-1].startswith(b"interrupted")
        assert stderr.count(b"\n") == 1 + (jobs == "1")  # the folder was made
        assert seconds < 1.7


def test_an_interrupt_at_a_prompt_for_input_ends_at_once(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen([*COMMAND, "solve", "-"], stdin=reading, stderr=subprocess.PIPE)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == b"interrupted\n" and process.returncode == 130
    os.close(reading)
    os.close(writing)


SMALL = '{"format": "spectralbai-instance/3", "n_arms": 2, "edges": [], "mu": [1, 0], "R": 1.0, "sigma": 1.0}'


@pytest.mark.parametrize(
    ("redirected", "code", "stderr"),
    [
        ("solve small.json >&-", 1, "error: standard output is closed; send it somewhere, such as > /dev/null\n"),
        ("--help >&-", 1, "error: standard output is closed; send it somewhere, such as > /dev/null\n"),
        ("solve - <&-", 1, 'error: standard input is closed, and "-" reads it; give a file, or pipe something in\n'),
        ("study tell x - <&-", 1, 'error: standard input is closed, and "-" reads it; give a file, or pipe something'),
        (
            "study create x small.json > /dev/null; "
            f"{sys.executable} -m spectralbai study tell x --counts - --id Monday <&-",
            1,
            'error: standard input: standard input is closed, and "-" reads it; give a file, or pipe something in\n',
        ),
        ("solve small.json <&- 2>&-", 0, ""),
        ("solve none.json 2>&-", 1, ""),
        ("solve none.json <&- 2>&-", 1, ""),
        ("solve small.json > /dev/full", 1, "error: No space left on device\n"),
    ],
)
def test_closed_streams_end_in_one_line(tmp_path: Path, redirected: str, code: int, stderr: str) -> None:
    (tmp_path / "small.json").write_text(SMALL)
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m spectralbai {redirected}"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == code and done.stderr.startswith(stderr) and done.stderr.count("\n") == bool(stderr)
    assert bool(done.stdout) is (code == 0)


def test_a_reader_that_has_enough_ends_the_command_without_a_word(tmp_path: Path, warm: list[str]) -> None:
    (tmp_path / "small.json").write_text(SMALL)
    reading, writing = os.pipe()
    os.close(reading)
    for arguments in (["solve", "small.json", "--json"], ["plan", "small.json", "--quick"]):
        command = [*warm, "spectralbai", *arguments]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (141, b"")
    os.close(writing)


def seen_on_a_terminal(
    arguments: list[str], interrupt_at: bytes | None = None, command: list[str] = COMMAND
) -> tuple[int, bytes]:
    """Returns the exit code of a command and what it shows on a terminal as stderr; it is interrupted when it has shown
    `interrupt_at`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while True:
        if interrupt_at is not None and interrupt_at in shown:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    return process.wait(timeout=10), shown


AFTER = "from spectralbai import cli; from spectralbai.cli import work; work.BEFORE_BAR = {}; cli.main()"


def test_long_work_shows_a_bar_and_short_work_does_not(tmp_path: Path, warm: list[str]) -> None:
    # How long anything takes depends on the machine, so what counts as long is a moment here, and a minute below.
    python, file = [*warm, "python", "-c"], str(instance(tmp_path, 100))
    code, shown = seen_on_a_terminal(["solve", file], command=[*python, AFTER.format(0.01)])
    assert code == 0 and b"solving" in shown and shown.rstrip().endswith(b"\x1b[2K")
    assert seen_on_a_terminal(["solve", file], command=[*python, AFTER.format(60.0)]) == (0, b"")


def test_an_interrupt_gives_the_cursor_back(tmp_path: Path) -> None:
    code, shown = seen_on_a_terminal(["solve", str(instance(tmp_path, 2000))], interrupt_at=b"solving")
    assert code == 130 and b"\x1b[?25l" in shown
    assert shown.endswith(b"\r\x1b[2K\x1b[?25hinterrupted\r\n")


ASKED = """
import os, signal, sys, time
from spectralbai.cli import main
from spectralbai.study import Study
from spectralbai.study.ledger import Ledger

place, times, pause = sys.argv.pop(1), int(sys.argv.pop(1)), float(sys.argv.pop(1))


def interrupting(function):
    def wrapped(self, *arguments, **options):
        done = function(self, *arguments, **options)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        time.sleep(pause)
        return done

    return wrapped


if place == "before":
    Ledger.taken = interrupting(Ledger.taken)  # the last that is looked at before tickets are given
else:
    Study.ask = interrupting(Study.ask)
main()
"""


@pytest.mark.parametrize(
    ("place", "times", "given"),
    [("before", 1, 0), ("after", 1, 2), ("after", 2, None)],
    ids=["before", "after", "twice"],
)
def test_an_interrupt_leaves_no_ticket_that_nobody_has_seen(
    tmp_path: Path, place: str, times: int, given: int | None
) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    sb.Study.create("pages", sb.Instance.from_dict(json.loads(SMALL)), storage=storage).close()
    start = time.monotonic()
    ask = ["study", "ask", "pages", "-n", "2", "--storage", storage]
    pause = "1" if times == 1 else "60"
    done = subprocess.run([sys.executable, "-c", ASKED, place, str(times), pause, *ask], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    if given is None:  # twice: it does not wait, come what may
        assert time.monotonic() - start < 30
        return
    printed = [line.split()[0] for line in done.stdout.splitlines()]
    with sb.Study.open("pages", storage) as study:
        assert sorted(printed) == sorted(ticket.id for ticket in study.status().pending)
    assert len(printed) == given
