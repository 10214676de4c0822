"""Rules of others: imported by name or as entry points, by commands and by their workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectralbai import Client, InvalidInput, plugins
from spectralbai.cli.work import processes
from tests.contracts.commands import INSTANCE

OUTSIDERS = Path(__file__).parent / "outsiders"
START = (sys.executable, "-u", "-c", "import sys; from spectralbai.cli import main; sys.path.remove(''); main()")
CAMPAIGN = """
format = "spectralbai-campaign/2"
runs = 4
deltas = [0.2, 0.1]
[[instances]]
kind = "path"
n_arms = 3
lead = 2.0
[[policies]]
kind = "own"
[[policies]]
kind = "uniform"
stopping = "own-lead"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a file of rules and a campaign that uses them; modules leave no trace in others."""
    (tmp_path / "my_rules.py").write_bytes((OUTSIDERS / "own_rules.py").read_bytes())
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_imported", [])
    return tmp_path


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(warm: list[str]) -> Command:
    """Returns a function that runs a command in a process that knows nothing of this one's modules, nor of the current
    directory."""
    return lambda *arguments: subprocess.run([*warm, "spectralbai", *arguments], capture_output=True, text=True)


def cold(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, which looks for packages from the beginning."""
    return subprocess.run([*START, *arguments], capture_output=True, text=True)


def test_commands_and_worker_processes_use_rules_of_a_file_of_their_own(
    run: Callable[..., Any], command: Command, folder: Path
) -> None:
    refused = run("simulate", "campaign.toml", "--out", "results", "--jobs", "2")
    assert refused.code == 1 and 'kind "own" is unknown' in refused.stderr
    done = command("simulate", "campaign.toml", "--out", "results", "--jobs", "2", "--import", "my_rules")
    assert done.returncode == 0 and "8 runs are in results" in done.stdout, done.stderr
    imported = json.loads(command("compare", "results", "--json", "--import", "my_rules").stdout)

    unknown = json.loads(run("compare", "results", "--json").stdout)
    assert imported == unknown and [cell["policy"] for cell in unknown] == ["own", "own", "uniform", "uniform"]
    assert {(cell["rule"], cell["proved"], cell["runs"]) for cell in unknown} == {("own-lead", False, 4)}
    table = run("compare", "results").stdout
    assert "own-lead †" in table and "not finished" not in table
    for kind in ("box", "delta", "proportions"):
        assert run("plot", "results", "--kind", kind).code == 0


@pytest.mark.parametrize(
    ("name", "code", "clue"),
    [
        ("nowhere", None, 'there is no module "nowhere", neither in '),
        ("empty.py", None, 'there is no module "empty.py", neither in '),
        ("needy", "import not_installed_anywhere", "(ModuleNotFoundError: No module named 'not_installed_anywhere')"),
        ("broken", "1 / 0", 'the module "broken" cannot be imported (ZeroDivisionError: division by zero); repair it'),
        ("garbled", "def", 'the module "garbled" cannot be imported (SyntaxError: '),
        ("quitter", "raise SystemExit('bye')", 'the module "quitter" cannot be imported (SystemExit: bye)'),
        ("", None, 'the module "" cannot be imported (ValueError: '),
    ],
)
def test_a_module_that_cannot_be_imported_is_refused_in_one_sentence(
    run: Callable[..., Any], folder: Path, name: str, code: str | None, clue: str
) -> None:
    (folder / "empty.py").touch()
    if code is not None:
        (folder / f"{name}.py").write_text(code)
    refused = run("simulate", "campaign.toml", "--out", "results", "--import", name)
    assert refused.code == 1 and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert plugins.loaded() == () and not (folder / "results").exists()


@pytest.mark.parametrize(
    "words",
    [
        "simulate",
        "compare",
        "plot",
        "solve",
        "plan",
        "serve",
        "study create",
        "study ask",
        "study tell",
        "study report",
    ],
)
def test_commands_that_look_up_names_can_import(run: Callable[..., Any], words: str) -> None:
    assert "--import MODULE" in run(*words.split(), "--help").stdout


def test_a_module_is_imported_once_and_named_to_workers(folder: Path) -> None:
    (folder / "counted.py").write_text("import os\nos.environ['COUNTED'] = os.environ.get('COUNTED', '') + '.'\n")
    os.environ.pop("COUNTED", None)
    plugins.load(["counted"])
    del sys.modules["counted"]
    plugins.load(["counted"])
    assert os.environ.pop("COUNTED") == "." and plugins.loaded() == ("counted",)


def test_worker_processes_import_what_their_parent_did(folder: Path) -> None:
    (folder / "counted.py").touch()
    plugins.load(["counted"])
    with processes(2) as executor:
        assert executor is not None and executor.submit(plugins.loaded).result() == ("counted",)


class TestEntryPoints:
    @pytest.fixture(autouse=True)
    def installed(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A package with entry points, as pip installs one; returns the file that lists them."""
        package = folder / "site" / "my_package-1.0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
        (folder / "my_rules.py").rename(folder / "site" / "rules_installed.py")
        (folder / "site" / "by_call.py").write_text("def add():\n    print('added')\n")
        (package / "entry_points.txt").write_text("[spectralbai]\nrules = rules_installed\nadder = by_call:add\n")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")]))
        return package / "entry_points.txt"

    def test_they_are_imported_or_called_by_commands_and_workers(self) -> None:
        done = cold("simulate", "campaign.toml", "--out", "results", "--jobs", "2")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("added\n") and "8 runs are in results" in done.stdout

    def test_one_that_is_broken_is_refused_in_one_sentence(self, installed: Path) -> None:
        installed.write_text("[spectralbai]\nrules = not_there_at_all\n")
        refused = cold("compare", "results")
        assert refused.returncode == 1 and refused.stderr.count("\n") == 1
        assert 'the entry point "rules = not_there_at_all" of an installed package cannot be imported' in refused.stderr


@pytest.fixture
def gauge(folder: Path) -> Path:
    """The current directory, with noise in a file of its own, gauge.py, and an instance that has it."""
    text = (Path(__file__).parents[1] / "docs" / "extending.md").read_text("utf-8")
    section = text.split("## A noise model")[1]
    (folder / "gauge.py").write_text(section.split("```python\n")[1].split("```")[0])
    document = {key: value for key, value in INSTANCE.items() if key != "sigma"}
    document["mu"] = [3.0, 0.5, 0.6]
    document["noise"] = {"kind": "plus-or-minus", "error": 1.0}
    (folder / "instance.json").write_text(json.dumps(document))
    return folder


@pytest.mark.usefixtures("gauge")
def test_noise_of_a_file_of_its_own_is_read_by_solve_and_plan(command: Command) -> None:
    solved = command("solve", "instance.json", "--json", "--import", "gauge")
    assert solved.returncode == 0 and json.loads(solved.stdout)["sigma"] == [1.0, 1.0, 1.0]
    refused = command("solve", "instance.json", "--json")
    assert refused.returncode == 1 and 'got "plus-or-minus"; import the module that defines it' in refused.stderr
    planned = command("plan", "instance.json", "--runs", "2", "--jobs", "2", "--import", "gauge")
    assert planned.returncode == 0 and "an error of 1" in planned.stdout


def test_a_study_of_a_file_of_its_own_is_created_read_and_served(gauge: Path, command: Command) -> None:
    url = f"sqlite:///{gauge / 'studies.db'}"
    options = ("--storage", url, "--json", "--import", "gauge")
    created = command("study", "create", "a", "instance.json", *options)
    assert created.returncode == 0, created.stderr
    refused = command("study", "status", "a", "--storage", url)
    assert refused.returncode == 1 and "(--import MODULE)" in refused.stderr and refused.stderr.count("\n") == 1
    status = command("study", "status", "a", *options)
    assert status.returncode == 0 and json.loads(status.stdout)["name"] == "a"

    words = ("serve", "--storage", url, "--port", "0", "--import", "gauge")
    with subprocess.Popen([*START, *words], stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            line = next(each for each in service.stderr if each.startswith("Serving "))
            client = Client(line.split(" at ")[1].split(";")[0], patience=20)
            assert client.open("a").status().results == 0
        finally:
            service.kill()


def test_load_refuses_what_is_not_there(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no module"):
        plugins.load(["nowhere.at.all"])
