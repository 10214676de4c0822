"""No command replaces a file that it cannot recognise as its own, unless told to; files are written whole."""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from matplotlib.figure import Figure
from typer import Typer

import spectralbai as sb
from spectralbai import reproduction
from spectralbai.campaign import Campaign, Results, run_campaign
from spectralbai.cli import app
from spectralbai.cli.outputs import EXPORT, INSTANCE, PAGE, PICTURE, REPORT, TABLE, Kind, Output
from spectralbai.cli.study import app as study
from spectralbai.errors import InvalidInput
from spectralbai.plot import as_png, plot_graph

Run = Callable[..., Any]

CAMPAIGN = """
format = "spectralbai-campaign/2"
runs = 1
deltas = [0.2]
[[instances]]
kind = "cliques"
n_cliques = 2
size = 2
[[policies]]
kind = "uniform"
"""
DEFINITION = '{"format": "spectralbai-instance/3", "n_arms": 2, "edges": [[0, 1, 1.0]], "R": 1.0, "low": 0, "high": 1}'


class Command(NamedTuple):
    """A command that writes files."""

    arguments: tuple[str, ...]
    option: str
    names: dict[str, Kind]
    """What it writes, the file named by the option first."""


COMMANDS = {
    "instance": Command(
        ("instance", "--edges", "given/edges.csv", "--R", "1", "--sigma", "1"),
        "--out",
        {"x.json": INSTANCE, "x.png": PICTURE},
    ),
    "plot": Command(("plot", "given/results", "--kind", "graph"), "--out", {"x.png": PICTURE}),
    "compare": Command(("compare", "given/results"), "--export", {"x.csv": TABLE}),
    "report": Command(("study", "report", "pages"), "--out", {"x.html": PAGE, "x.json": REPORT}),
    "export": Command(("study", "export", "pages"), "--out", {"x.json": EXPORT}),
    "export as CSV": Command(("study", "export", "pages"), "--out", {"x.csv": TABLE}),
    "reproduce": Command(("reproduce", "--jobs", "1"), "--out", {"figure.csv": TABLE, "figure.png": PICTURE}),
}


def foreign_picture() -> bytes:
    content = io.BytesIO()
    Figure((1, 1)).savefig(content, format="png")
    return content.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"my notes on spectralbai\n",
    "JSON": b'{"format": "other/1"}',
    "JSON that names a format further down": b'{"n": 1, "more": {"format": "spectralbai-instance/3"}}',
    "JSON of a format that is no number": b'{"format": "spectralbai-instance/x"}',
    "a list": b"[1, 2]",
    "CSV": b"a,b\n1,2\n",
    "HTML": b"<!DOCTYPE html>\n<title>spectralbai</title>",
    "HTML of another generator": b'<!DOCTYPE html>\n<meta name="generator" content="other">',
    "PNG": foreign_picture(),
    "binary": bytes(range(256)),
}


@pytest.fixture(scope="module")
def rows() -> list[reproduction.CurveRow]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "RADII", reproduction.RADII[:2])
        return reproduction.reproduce(runs=1, delta=0.3, seed=0)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read; tests work on copies."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "results").mkdir()
    (folder / "edges.csv").write_text("one,other\na,b\nb,c\n")
    with Results.begin(folder / "results", CAMPAIGN, Campaign.from_toml(CAMPAIGN)) as results:
        run_campaign(results.campaign, results)
    instance = sb.Instance.from_dict(json.loads(DEFINITION))
    sb.Study.create("pages", instance, 0.05, f"sqlite:///{folder / 'studies.db'}").close()
    return folder


@pytest.fixture(scope="module")
def picture() -> bytes:
    return as_png(plot_graph(sb.Instance.from_dict(json.loads(DEFINITION))))


@pytest.fixture(autouse=True)
def folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: Path,
    rows: list[reproduction.CurveRow],
    picture: bytes,
) -> Path:
    """A working directory with what the commands read. All pictures are one, which is drawn once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spectralbai.reproduction.reproduce", lambda *_: rows)
    for name in ("as_png", "as_picture"):
        monkeypatch.setattr(f"spectralbai.plot.{name}", lambda *_: picture)
    shutil.copytree(given, tmp_path / "given")
    monkeypatch.setenv("SPECTRALBAI_STORAGE", "sqlite:///given/studies.db")
    (tmp_path / "place").mkdir()
    return tmp_path


def arguments_of(command: Command, *more: str) -> list[str]:
    first = next(iter(command.names))
    out = "place" if command.arguments[0] == "reproduce" else f"place/{first}"
    return [*command.arguments, command.option, out, *more]


def contents(folder: Path) -> dict[str, tuple[bool, bytes]]:
    """Returns every file of a folder, with whether it is a link."""
    return {path.name: (path.is_symlink(), path.read_bytes()) for path in folder.iterdir()}


def refused(result: Any) -> str:
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return str(result.stderr)


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """What the first test that needs it has made, for those after it."""
    return {}


@pytest.fixture
def own(folder: Path, run: Run, made: dict[str, bytes]) -> dict[str, bytes]:
    """A file of every kind that commands write, by the name of its kind."""
    for command in COMMANDS.values() if not made else ():
        assert run(*arguments_of(command, "--force")).code == 0
        made.update({kind.name: (folder / "place" / name).read_bytes() for name, kind in command.names.items()})
    for path in (folder / "place").iterdir():
        path.unlink()
    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_only_files_of_its_own_kind_are_replaced_unasked(
    name: str, folder: Path, run: Run, own: dict[str, bytes]
) -> None:
    command, place = COMMANDS[name], folder / "place"
    for target, kind in command.names.items():
        for what, content in {**FOREIGN, **own}.items():
            for linked in (False, True):
                victim = place / ("elsewhere" if linked else target)
                victim.write_bytes(content)
                if linked:
                    (place / target).symlink_to("elsewhere")
                before = contents(place)
                mine = what == kind.name and kind.mark is not None
                result = run(*arguments_of(command))
                if mine:
                    assert result.code == 0
                else:
                    message = refused(result)
                    assert f"{command.option}: place/{target} is there already" in message and "--force" in message
                    assert contents(place) == before, (name, what)
                    if what == "text":
                        assert run(*arguments_of(command, "--force")).code == 0
                        assert victim.read_bytes() != content
                assert (place / target).is_symlink() is linked
                for path in place.iterdir():
                    path.unlink()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_read_only_file_is_replaced_only_if_told_to_and_stays_read_only(
    name: str, folder: Path, run: Run, own: dict[str, bytes]
) -> None:
    command = COMMANDS[name]
    target, kind = next(iter(command.names.items()))
    victim = folder / "place" / target
    victim.write_bytes(own[kind.name])
    victim.chmod(0o440)
    assert f"place/{target} is " in refused(run(*arguments_of(command)))
    assert contents(folder / "place") == {target: (False, own[kind.name])}
    assert run(*arguments_of(command, "--force")).code == 0
    assert stat.S_IMODE(victim.stat().st_mode) == 0o440


@pytest.mark.parametrize("name", COMMANDS)
def test_directories_are_not_written_to_even_if_told_to(name: str, folder: Path, run: Run) -> None:
    command = COMMANDS[name]
    for target in command.names:
        (folder / "place" / target).mkdir()
        for more in ((), ("--force",)):
            assert f"place/{target} is a directory" in refused(run(*arguments_of(command, *more)))
        (folder / "place" / target).rmdir()
    assert list((folder / "place").iterdir()) == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "reproduce"])
def test_no_folder_is_made_for_a_file(name: str, folder: Path, run: Run) -> None:
    command = COMMANDS[name]
    target = next(iter(command.names))
    message = refused(run(*command.arguments, command.option, f"none/{target}"))
    assert f"{command.option}: there is no folder none; make it first" in message
    (folder / "place" / target).symlink_to(folder / "none" / "file")
    assert f"there is no folder {folder}/none" in refused(run(*arguments_of(command)))
    assert not (folder / "none").exists()


def test_the_folder_that_a_command_fills_is_made_and_said(folder: Path, run: Run) -> None:
    (folder / "campaign.toml").write_text(CAMPAIGN)
    result = run("reproduce", "--jobs", "1")
    assert (result.code, result.stderr) == (0, "made the folder reproduction\n")
    result = run("simulate", "campaign.toml", "--out", "results", "--jobs", "1")
    assert (result.code, result.stderr) == (0, "made the folder results\n")
    for arguments in (("reproduce",), ("simulate", "campaign.toml")):
        message = refused(run(*arguments, "--out", "none/results", "--jobs", "1"))
        assert "there is no folder none; make it first" in message and not (folder / "none").exists()


def test_the_check_comes_before_any_work(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("x.json", "x.png", "x.csv", "x.html", "figure.png"):
        (folder / "place" / name).write_text("mine")
    for place in (
        "spectralbai.inputs.table.edges_from",
        "spectralbai.campaign.summarise",
        "spectralbai.plot.plot_graph",
        "spectralbai.reproduction.reproduce",
        "spectralbai.study.Study.report",
        "spectralbai.study.Study.records",
    ):
        monkeypatch.setattr(place, lambda *_, **__: pytest.fail("it went to work"))
    for command in COMMANDS.values():
        assert "is there already" in refused(run(*arguments_of(command)))


def test_a_dangling_link_is_written_through(folder: Path, run: Run) -> None:
    (folder / "place" / "x.json").symlink_to(folder / "place" / "elsewhere")
    assert run(*arguments_of(COMMANDS["export"])).code == 0
    assert (folder / "place" / "x.json").is_symlink()
    assert json.loads((folder / "place" / "elsewhere").read_bytes())["format"] == "spectralbai-export/6"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "reproduce"])
def test_a_pipe_is_written_into(name: str, folder: Path, run: Run) -> None:
    command = COMMANDS[name]
    target, kind = next(iter(command.names.items()))
    pipe = folder / "place" / target
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert run(*arguments_of(command)).code == 0
    reader.join(10)
    assert got[0] and (kind.mark is None or Output("--out", pipe, kind, False).is_stream)
    assert [path.name for path in (folder / "place").iterdir()] == [target] and pipe.is_fifo()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("reproduce", "export as CSV")])
def test_devices_and_open_files_are_written_into(name: str, folder: Path, run: Run, warm: list[str]) -> None:
    command = COMMANDS[name]
    start = [*command.arguments, command.option]
    assert run(*start, "/dev/null").code == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (folder / "kept").write_bytes(b"before\n")
    with (folder / "kept").open("ab") as kept:
        assert run(*start, f"/dev/fd/{kept.fileno()}").code == 0
    content = (folder / "kept").read_bytes()
    assert content.startswith(b"before\n") and len(content) > 20
    done = subprocess.run([*warm, "spectralbai", *start, "/dev/stdout"], capture_output=True)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    if name in ("instance", "report", "export", "plot"):  # the answer is all that goes to stdout
        kind = next(iter(command.names.values()))
        (folder / "answer").write_bytes(done.stdout)
        Output("--out", folder / "answer", kind, False)
    assert not list(Path("/dev").glob("*.json")) + list(Path("/dev").glob("*.png"))


def test_a_closed_descriptor_a_loop_and_a_name_too_long_are_refused(folder: Path, run: Run) -> None:
    (folder / "loop").symlink_to("loop")
    for out in ("/dev/fd/987", "loop", "x" * 300, "given/edges.csv/x"):
        message = refused(run("study", "export", "pages", "--out", out, "--force"))
        assert "--out: " in message and "choose another" in message


def test_a_file_that_comes_while_the_command_works_is_not_replaced(folder: Path) -> None:
    output = Output("--out", folder / "late", INSTANCE, False)
    (folder / "late").write_text("mine")
    with pytest.raises(InvalidInput, match="is there already"):
        output.write(b"{}")
    assert (folder / "late").read_text() == "mine"


def test_a_write_that_fails_leaves_the_old_file_and_no_part_of_the_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    file = folder / "place" / "figure.csv"
    file.write_text("old")
    output = Output("--out", file, TABLE, True)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        output.write(b"new")
    assert contents(folder / "place") == {"figure.csv": (False, b"old")}


def test_a_folder_that_cannot_be_written_to_is_refused(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", deny)  # a superuser may write anywhere
    for command in COMMANDS.values():
        message = refused(run(*arguments_of(command, "--force")))
        assert "place is no directory that can be written to (Permission denied)" in message


EDGES = ("instance", "--edges", "given/edges.csv", "--R", "1", "--sigma", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*EDGES, "--out", "place/x.png"), "--out must name a file such as options.json"),
        ((*EDGES, "--out", "place"), "--out: place is a directory"),
        ((*EDGES, "--out", "none/x.json"), "--out: there is no folder none; make it first"),
        ((*EDGES, "--out", "given/edges.csv"), "--out would overwrite given/edges.csv, which is read"),
        ((*EDGES, "--out", "given/edges.csv", "--force"), "--out would overwrite given/edges.csv, which is read"),
        ((*EDGES, "--out", "given/edges.csv/x.json"), "--out: given/edges.csv is no directory"),
        ((*EDGES, "--out", "mine.txt"), "--out: mine.txt is there already, and is not an instance; choose another"),
        ((*EDGES, "--out", "mine.json"), "--out: mine.json is there already, and is not an instance"),
        ((*EDGES, "--out", "/dev/fd/987"), "--out: /dev/fd/987 cannot be written to (Bad file descriptor)"),
        (("instance", "--edges", "none.csv", "--R", "1", "--sigma", "1"), "none.csv: No such file or directory"),
        (("plot", "given/results", "--out", "mine.txt"), "--out must end in .png, .pdf or .svg"),
        (("plot", "given/results", "--out", "none/x.png"), "--out: there is no folder none"),
        (("plot", "given/results", "--kind", "pie"), "--kind must be one of box, R, delta, K, proportions, graph"),
        (("plot", "place"), "place holds no results"),
        (("plot", "none"), "none holds no results"),
        (("compare", "given/results", "--export", "mine.csv"), "--export: mine.csv is there already, and a table does"),
        (("compare", "given/results", "--export", "none/x.csv"), "--export: there is no folder none"),
        (("compare", "given/results", "--export", "place", "--force"), "--export: place is a directory"),
        (("compare", "given/results", "--csv", "--json"), "--csv and --json are both given; keep one"),
        (("study", "report", "pages", "--out", "mine.html"), "--out: mine.html is there already, and is not a report"),
        (("study", "report", "pages", "--out", "mine.txt"), "--out: mine.txt is there already, and is not a report"),
        (("study", "report", "pages", "--out", "."), "--out must name a page, such as report.html"),
        (("study", "report", "pages", "--out", "none/x.html"), "--out: there is no folder none"),
        (("study", "report", "page"), 'holds no study "page"; did you mean "pages"?'),
        (("study", "export", "pages", "--out", "mine.csv"), "--out: mine.csv is there already, and a table does not"),
        (("study", "export", "pages", "--out", "mine.json"), "--out: mine.json is there already, and is not an expor"),
        (("study", "export", "pages", "--out", "loop"), "--out: loop cannot be written to (Too many levels"),
        (("study", "export", "pages", "--out", "given/studies.db"), "--out: given/studies.db is there already"),
        (("study", "delete", "pages"), 'to delete the study "pages", with 0 results, somebody has to confirm it'),
        (("study", "delete", "page", "--yes"), 'holds no study "page"; did you mean "pages"?'),
        (("study", "delete", "", "--yes"), "`name` must be one line of 1 to 100 printable characters, got ''"),
        (("study", "delete", "pages", "--yes", "--storage", "sqlite:///none.db"), "there is no database none.db"),
        (("study", "ask", "pages", "-n", "0"), "`n` must be a whole number of at least 1, got 0"),
        (("study", "ask", "pages", "-n", "10001"), "`n` must be at most 10000, got 10001; ask again for more"),
        (("study", "abandon", "pages", "0123"), '"0123" is no ticket of the study "pages"'),
        (("reproduce", "--out", "mine.txt"), "--out: mine.txt is no directory that can be written to"),
        (("reproduce", "--out", "none/deep"), "--out: there is no folder none"),
        (("simulate", "given/c.toml", "--out", "mine.txt"), "--out: mine.txt is no directory that can be written to"),
        (("simulate", "given/c.toml", "--out", "none/deep"), "--out: there is no folder none"),
        (("simulate", "given/c.toml", "--out", "taken"), "results.sqlite: file is not a database"),
        (("plan", "mine.json"), "mine.json: "),
        (("plan", "none.json"), "none.json: No such file or directory"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    folder: Path, run: Run, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "given" / "c.toml").write_text(CAMPAIGN)
    (folder / "taken").mkdir()
    for name in ("mine.txt", "mine.json", "mine.csv", "mine.html", "taken/results.sqlite"):
        (folder / name).write_text('{"mine": true}' + 200 * " ")
    (folder / "loop").symlink_to("loop")

    def everything() -> dict[str, bytes]:
        paths = (path for path in folder.rglob("*") if path.is_file() and "studies.db" not in path.name)
        return {str(path): path.read_bytes() for path in paths}

    before, exported = everything(), run("study", "export", "pages").stdout
    assert message in refused(run(*arguments))
    assert everything() == before and run("study", "export", "pages").stdout == exported
    assert not (folder / "none").exists() and not (folder / "reproduction").exists()


SCORE = ("--run", "echo 1 {option} 0.5", "--low", "0", "--high", "1", "--tolerance", "0.3")
NEW = "place/new"
"""What commands make, where they make something."""
OWN = {
    **dict.fromkeys(
        ("create", "ask", "tell", "abandon", "withdraw", "stop", "join", "import", "delete", "void", "correct"),
        "given/studies.db",
    ),
    **dict.fromkeys(("compare", "plot"), "given/results/results.sqlite"),  # where solved instances are kept
}
"""Files of ours that a command adds to; those that only look at a study leave even that as it is."""
EVERY: dict[str, tuple[tuple[str, ...], ...]] = {
    "instance": ((*EDGES, "--out", f"{NEW}.json"), (*EDGES, "--out", "given/edges.csv", "--force")),
    "plan": (
        ("plan", "given/x.json", "--quick"),
        ("plan", "given/x.json", "--quick", "--json", "--observations", "given/past.csv"),
        ("plan", "given/x.json", "--budget", "9", "--runs", "1", "--jobs", "1", "--plot", f"{NEW}.png"),
    ),
    "solve": (("solve", "given/x.json"), ("solve", "given/x.json", "--json"), ("solve", "given/past.csv")),
    "reproduce": (("reproduce", "--jobs", "1", "--out", NEW),),
    "simulate": (
        ("simulate", "given/c.toml", "--jobs", "1", "--out", NEW),
        ("simulate", "given/other.toml", "--jobs", "1", "--out", "given/results"),
        ("simulate", "given/c.toml", "--jobs", "1", "--out", "theirs"),
    ),
    "compare": (
        ("compare", "given/results"),
        ("compare", "given/results", "--export", f"{NEW}.csv"),
        ("compare", "theirs"),
    ),
    "plot": (("plot", "given/results", "--out", f"{NEW}.png"), ("plot", "theirs", "--out", f"{NEW}.png")),
    "study create": (
        ("study", "create", "more", "given/x.json"),
        ("study", "create", "pages", "given/x.json"),
        ("study", "create", "more", "given/x.json", "--storage", f"sqlite:///{NEW}.db"),
    ),
    "study ask": (("study", "ask", "pages", "-n", "2"), ("study", "ask", "pages", "-n", "0")),
    "study tell": (
        ("study", "tell", "pages", "{ticket}", "0"),
        ("study", "tell", "pages", "{ticket}", "--failed", "broken"),
        ("study", "tell", "pages", "-"),
        ("study", "tell", "pages", "--counts", "given/counts.csv", "--id", "Monday"),
    ),
    "study shares": (("study", "shares", "pages", "--n", "9"),),
    "study abandon": (("study", "abandon", "pages", "{ticket}"),),
    "pick": (
        ("pick", "--table", "given/wide.csv", "--low", "0", "--high", "1", "--tolerance", "0.1"),
        (
            "pick",
            "given/options.txt",
            "given/items.txt",
            *SCORE,
            "--out",
            f"{NEW}.html",
            "--storage",
            f"sqlite:///{NEW}.db",
        ),
        ("pick", "given/options.txt", "given/items.txt", *SCORE, "--out", "mine.html"),
        ("pick", "given/options.txt", "given/items.txt", *SCORE, "--storage", "sqlite:///theirs.db"),
    ),
    "backup": (
        ("backup", f"{NEW}.db"),
        ("backup", "given/x.json"),
        ("backup", f"{NEW}2.db", "--storage", "sqlite:///theirs.db"),
    ),
    "restore": (
        ("restore", "given/studies.db", "--storage", f"sqlite:///{NEW}.db"),
        ("restore", "given/studies.db"),
        ("restore", "theirs.db", "--storage", f"sqlite:///{NEW}2.db"),
    ),
    "study void": (
        ("study", "import", "pages", "given/past.csv", "--origin", "past"),
        ("study", "void", "pages", "--id", "past"),
        ("study", "void", "pages", "--id", "past", "--yes"),
    ),
    "study correct": (
        ("study", "tell", "pages", "{ticket}", "0"),
        ("study", "correct", "pages", "{ticket}", "1"),
        ("study", "correct", "pages", "{ticket}", "1", "--yes"),
    ),
    "study check": (("study", "check", "pages"), ("study", "check", "--all", "--json")),
    "study withdraw": (("study", "withdraw", "pages", "a"),),
    "study stop": (("study", "stop", "pages"),),
    "study join": (("study", "join", "pages", "given/larger.json"), ("study", "join", "pages", "given/x.json")),
    "study status": (("study", "status", "pages"), ("study", "status", "pages", "--json", "--control", "a")),
    "study list": (("study", "list"),),
    "study upgrade": (("study", "upgrade"),),
    "study report": (("study", "report", "pages", "--json"), ("study", "report", "pages", "--out", f"{NEW}.html")),
    "study export": (
        ("study", "export", "pages"),
        ("study", "export", "pages", "--out", f"{NEW}.json"),
        ("study", "export", "pages", "--out", f"{NEW}.csv"),
    ),
    "study import": (
        ("study", "import", "pages", "given/past.csv", "--origin", "past"),
        ("study", "import", "more", "given/exported.json"),
        ("study", "import", "more", "given/x.json"),
    ),
    "study delete": (("study", "delete", "pages"), ("study", "delete", "pages", "--yes")),
}
"""Every command, in ways that work and ways that do not."""


def names_of(commands: Typer) -> set[str]:
    return {each.name or each.callback.__name__ for each in commands.registered_commands if each.callback is not None}


def test_every_command_is_tried() -> None:
    assert set(EVERY) == names_of(app) | {f"study {name}" for name in names_of(study)}


@pytest.mark.parametrize("name", EVERY)
def test_no_command_changes_a_file_that_it_did_not_make(name: str, folder: Path, run: Run) -> None:
    given = folder / "given"
    (given / "x.json").write_text(json.dumps({**json.loads(DEFINITION), "mu": [0.9, 0.2], "labels": ["a", "b"]}))
    larger = {**json.loads(DEFINITION), "n_arms": 3, "mu": [0.9, 0.2, 0.1], "labels": ["a", "b", "c"]}
    (given / "larger.json").write_text(json.dumps(larger))
    (given / "options.txt").write_text("a\nb\n")
    (given / "items.txt").write_text("one\ntwo\n")
    (given / "wide.csv").write_text("option,one,two\na,1,1\nb,0,0\n")
    (given / "past.csv").write_text("label,outcome\n" + "a,0.5\na,0.7\nb,0.2\nb,0.3\n")
    (given / "counts.csv").write_text("label,trials,successes\na,3,2\nb,3,0\n")
    (given / "c.toml").write_text(CAMPAIGN)
    (given / "other.toml").write_text(CAMPAIGN.replace("size = 2", "size = 3"))
    assert run("study", "delete", "pages", "--yes").code == 0
    assert run("study", "create", "pages", "given/x.json").code == 0
    ticket = run("study", "ask", "pages").stdout.split()[0]
    assert run("study", "export", "pages", "--out", "given/exported.json").code == 0
    (folder / "theirs").mkdir()
    for foreign in (folder / "theirs" / "results.sqlite", folder / "theirs.db"):
        with sqlite3.connect(foreign) as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
    for what, content in FOREIGN.items():
        (folder / "place" / what).write_bytes(content)

    def files() -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}

    codes = []
    for arguments in EVERY[name]:
        in_theirs = [(*arguments, "--storage", "sqlite:///theirs.db")] if arguments[0] == "study" else []
        for one in (arguments, *in_theirs):
            before = files()
            codes.append(run(*(part.replace("{ticket}", ticket) for part in one), stdin=b"no-ticket 1\n").code)
            after = files()
            for path, content_and_mode in before.items():
                ours = one is arguments and path == folder / OWN.get(name.split()[-1], "none")
                assert ours or after.get(path) == content_and_mode, (one, path)
            assert not [path for path in {*after} - {*before} if folder / "place" not in path.parents], one
            if one is not arguments and "sqlite:///place" not in " ".join(arguments):
                assert codes[-1] == 1
    assert 0 in codes
