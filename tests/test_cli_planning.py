"""The commands `instance` and `plan`: what they make, what they say, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.graph import Categories
from spectralbai.inputs.history import implied_R
from spectralbai.noise import Binary
from spectralbai.planning import planned

EXAMPLES = Path(__file__).parent.parent / "examples"
SCORES = sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05), [0.95, 0.1, 0.2])
Run = Callable[..., Any]


def made_instance(run: Run, out: Path, *arguments: str) -> sb.Instance:
    done = run("instance", *arguments, "--out", str(out))
    assert (done.code, done.stderr) == (0, "")
    assert f"next: spectralbai plan {out}" in done.stdout
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    return sb.Instance.from_dict(json.loads(out.read_text("utf-8")))


def test_dose_finding_on_a_path_with_a_tolerance(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "doses.json"
    options = (
        "--features",
        "milligrams",
        "--neighbors",
        "2",
        "--guess",
        "response",
        "--step",
        "0.15",
        "--sigma",
        "0.4",
    )
    made = made_instance(run, out, "--arms", str(EXAMPLES / "doses.csv"), *options, "--tolerance", "0.05")
    assert made.labels[:2] == ("placebo", "5 mg") and made.problem.tolerance == 0.05
    assert made.problem.R == pytest.approx(implied_R(made.problem.graph, 0.15))
    shown = run("plan", str(out), "--quick", "--observations", str(EXAMPLES / "pilot.csv"))
    assert shown.code == 0
    for words in (
        "means: past observations",
        "sigma from 48 observations",
        "round up",
        "S(mu) from the observations",
        "with 95% confidence",
        "Expected trials: ",
        "for 80% of the means that the 48 observations leave plausible",
    ):
        assert words in shown.stdout
    document = json.loads(run("plan", str(out), "--quick", "--json").stdout)
    assert document["source"] == "guess" and document["with_graph"]["mean"] is None
    assert document["by_R"][0]["forecast"] is None
    changed = run("plan", str(out), "--quick", "--sigma", "0.8", "--tolerance", "0.2", "--R", "inf", "--delta", "0.1")
    assert "sigma 0.8" in changed.stdout and "R = inf, tolerance 0.2, delta = 0.1" in changed.stdout


def test_page_variants_in_groups_with_bernoulli_outcomes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "R_FACTORS", (0.1, 1.0))
    monkeypatch.setattr(planned, "TOLERANCE_SHARES", ())
    out = tmp_path / "pages.json"
    files = ("--arms", str(EXAMPLES / "pages.csv"), "--edges", str(EXAMPLES / "similar_pages.csv"), "--guess", "clicks")
    made = made_instance(run, out, *files, "--R", "0.002", "--low", "0", "--high", "1")
    assert made.problem.graph.n_components == 4 and made.problem.outcome_range == (0, 1)
    shown = run("plan", str(out), "--delta", "0.4", "--runs", "1", "--jobs", "1")
    assert shown.code == 0 and "The graph" in shown.stdout and "with the graph" in shown.stdout
    assert "too small for these means" in shown.stdout
    clicks = made_instance(run, out, *files, "--R", "0.002", "--binary")
    assert clicks.problem.noise == Binary(0, 1)
    assert "outcomes 0 or 1" in run("plan", str(out), "--quick").stdout
    scores = made_instance(run, out, *files, "--R", "0.002", "--low", "-1", "--high", "1", "--binary")
    assert scores.problem.noise == Binary(-1, 1)
    for other in ("--sigma", "--low"):
        assert run("instance", *files, "--R", "0.002", "--binary", other, "1", "--out", str(out)).code == 1


def test_a_grid_of_hyper_parameters(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "tuning.json"
    options = (
        "--features",
        "log10 rate,depth",
        "--neighbors",
        "4",
        "--step",
        "0.1",
        "--sigma",
        "0.05",
        "--tolerance",
        "0.01",
    )
    made = made_instance(run, out, "--arms", str(EXAMPLES / "tuning.csv"), *options)
    assert made.mu is None and made.problem.graph.n_components == 1
    shown = run("plan", str(out), "--quick", "--R", "0.01")
    assert shown.code == 0 and "random smooth signals with S(mu) = R" in shown.stdout


def test_edges_alone_make_an_instance_and_R_may_wait(run: Run, tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("a;b;weight\nx;y;0,5\ny;z;1\n", encoding="utf-8-sig")
    done = run("instance", "--edges", str(edges), "--sigma", "1", "--out", str(tmp_path / "i.json"))
    assert done.code == 0 and "R = inf" in done.stdout
    assert json.loads((tmp_path / "i.json").read_text())["edges"] == [[0, 1, 0.5], [1, 2, 1.0]]


def test_sigma_may_come_from_a_pilot_and_columns_of_any_kind_make_options_alike(run: Run, tmp_path: Path) -> None:
    arms, pilot = tmp_path / "arms.csv", tmp_path / "pilot.csv"
    arms.write_text(
        "name,mg,since,form,mild\na,1,2026-01-01,pill,yes\nb,2,2026-01-05,pill,no\nc,4,2026-02-01,drops,yes\n"
        "d,8,2026-03-01,drops,no\n"
    )
    pilot.write_text("name,y\na,1\na,2\nb,1.5\nb,2\nc,3\nc,4.5\n")
    options = ("--arms", str(arms), "--features", "mg,since,form,mild", "--observations", str(pilot), "--R", "1")
    done = run("instance", *options, "--out", str(tmp_path / "i.json"))
    assert done.code == 0
    for words in (
        "mg (numbers); since (dates, in days); form (2 categories: drops, pill); mild (yes or no)",
        "each option is joined to its 2 nearest",
        "sigma = 2.9:",
        "95% interval 0.433 to 2.85",
    ):
        assert words in done.stdout, done.stdout
    assert json.loads((tmp_path / "i.json").read_text())["sigma"] == 2.9


GOOD = ("--arms", "good.csv", "--features", "x")
SURE = (*GOOD, "--sigma", "1")
REFUSED_INSTANCES: list[tuple[tuple[str, ...], str]] = [
    ((), "--arms or --edges is needed"),
    (("--arms", "good.csv"), "--features is needed"),
    (("--features", "x"), "--arms or --edges"),
    (("--edges", "good.csv", "--guess", "x"), "name columns of --arms"),
    ((*GOOD, "--edges", "good.csv"), "--features and --edges"),
    ((*GOOD, "--R", "1", "--step", "1"), "--R and --step"),
    (GOOD, "--sigma is missing, the standard deviation of one outcome of one option; know it from experience, or try"),
    ((*GOOD, "--low", "1"), "--low and --high go together"),
    ((*SURE, "--low", "0", "--high", "1"), "--sigma and --low, --high, --binary both describe the noise; keep one"),
    ((*SURE, "--observations", "pilot.csv"), "--sigma and --observations both describe the noise; keep one"),
    ((*GOOD, "--binary", "--observations", "pilot.csv"), "--observations and --low, --high, --binary both"),
    (
        (*GOOD, "--observations", "once.csv"),
        "once.csv: an estimate of sigma needs an option with two observations, got",
    ),
    ((*GOOD, "--observations", "constant.csv"), "constant.csv: the 4 outcomes never vary"),
    ((*GOOD, "--observations", "none.csv"), "none.csv"),
    ((*GOOD, "--sigma", "0"), "`sigma` must be a finite positive number, or one per arm, got 0"),
    ((*GOOD, "--sigma", "nan"), "`sigma` must be a finite positive number"),
    ((*GOOD, "--low", "1", "--high", "0"), "`low` must be"),
    ((*SURE, "--tolerance", "-1"), "`tolerance` must be a finite non-negative number, got -1"),
    ((*SURE, "--R", "-1"), "`R` must be non-negative"),
    ((*SURE, "--step", "-1"), "`step` must be"),
    ((*SURE, "--step", "1e200"), "--step must be a number whose square"),
    ((*SURE, "--neighbors", "5"), "`neighbors` must be below the number of arms 3, got 5; lower it"),
    ((*SURE, "--neighbors", "0"), "`neighbors` must be a whole number of at least 1, got 0"),
    (("--arms", "mixed.csv", "--features", "x", "--sigma", "1"), 'mixed.csv: line 4, column "x": a number is needed'),
    (("--arms", "good.csv", "--features", "x,y", "--sigma", "1"), 'good.csv: there is no column "y"'),
    (("--arms", "good.csv", "--features", "name", "--sigma", "1"), 'good.csv: the column "name" holds the labels'),
    (("--arms", "good.csv", "--features", " , ", "--sigma", "1"), "--features must name columns, such as dose,age"),
    (("--arms", "none.csv", "--features", "x", "--sigma", "1"), "none.csv"),
    ((*SURE, "--guess", "y"), 'good.csv: there is no column "y"'),
    ((*GOOD, "--guess", "x", "--low", "0", "--high", "1"), "`--guess` must lie in [0, 1] as the outcomes do, got 2"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of tables, good ones and others, in which commands then run."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "good.csv": "name,x\na,1\nb,2\nc,3\n",
        "mixed.csv": "name,x\na,1\nb,2\nc,three\n",
        "pilot.csv": "name,y\na,1\na,2\nb,1\nb,1.5\nc,0\nc,0.5\n",
        "once.csv": "name,y\na,1\nb,2\n",
        "constant.csv": "name,y\na,1\na,1\nb,2\nb,2\n",
        "stranger.csv": "name,y\nq,1\n",
        "empty.csv": "",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("arguments", "clue"), REFUSED_INSTANCES)
def test_what_instance_cannot_use_is_refused_in_a_sentence_and_nothing_is_written(
    run: Run, files: Path, arguments: tuple[str, ...], clue: str
) -> None:
    there = sorted(files.iterdir())
    refused = run("instance", *arguments, "--out", "new.json")
    assert (refused.code, refused.stdout) == (1, "") and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert sorted(files.iterdir()) == there


@pytest.mark.parametrize("bad", [".", "x.png", "good.csv"])
def test_an_instance_is_not_written_over_what_is_read(run: Run, files: Path, bad: str) -> None:
    refused = run("instance", *SURE, "--out", bad)
    assert refused.code == 1 and "--out" in refused.stderr and refused.stderr.count("\n") == 1
    assert (files / "good.csv").read_text().startswith("name,x")


REFUSED_PLANS: list[tuple[tuple[str, ...], str]] = [
    (("i.json", "--observations", "once.csv"), 'every option needs an observation, got none of "c"'),
    (("i.json", "--observations", "stranger.csv"), 'stranger.csv: line 2, column "name": "q" is no label'),
    (("i.json", "--observations", "empty.csv"), "empty.csv: the file is empty"),
    (("i.json", "--observations", "none.csv"), "none.csv"),
    (("none.json",), "none.json"),
    (("good.csv",), "good.csv: line 1, column 1: not JSON"),
    (("i.json", "--delta", "2"), "delta"),
    (("i.json", "--runs", "0"), "--runs"),
    (("i.json", "--jobs", "0"), "--jobs"),
    (("i.json", "--seed", "-1"), "--seed"),
    (("i.json", "--sigma", "0"), "`sigma` must be a finite positive number, or one per arm, got 0"),
    (("i.json", "--sigma", "-2"), "`sigma` must be a finite positive number"),
    (("scores.json", "--sigma", "1"), "--sigma cannot be used with outcomes in [0, 1], as in the file"),
    (("i.json", "--tolerance", "-1"), "`tolerance` must be a finite non-negative number, got -1"),
    (("i.json", "--tolerance", "inf"), "`tolerance` must be a finite non-negative number, got inf"),
    (("i.json", "--R", "-1"), "`R` must be non-negative"),
    (("i.json", "--R", "inf"), '"mu" is missing, and R = inf tells nothing: guess mu'),
    (("i.json", "--R", "0", "--observations", "pilot.csv"), "`R` must be positive to plan from observations, got 0"),
    (("scores.json", "--observations", "pilot.csv"), 'pilot.csv: line 3, column "y": an outcome must lie in [0, 1]'),
    (("i.json", "--budget", "0"), "--budget"),
    (("i.json", "--budget", "100", "--quick"), "--quick skips the simulation that --budget needs"),
    (("i.json", "--plot", "new/b.png"), "--plot shows what a budget can find; give --budget too"),
    (
        ("i.json", "--budget", "100", "--plot", "new/b.txt"),
        "--plot must end in .png, .pdf or .svg, which says the format, got new/b.txt",
    ),
    (("i.json", "--budget", "100", "--plot", "b.png", "--observations", "none.csv"), "none.csv"),
    (
        ("i.json", "--budget", "100", "--plot", "b.png", "--observations", "once.csv"),
        "every option needs an observation",
    ),
    (("i.json", "--budget", "100", "--plot", "new/b.png"), "--plot: there is no folder new; make it first"),
]


@pytest.mark.parametrize(("arguments", "clue"), REFUSED_PLANS)
def test_what_plan_cannot_use_is_refused_in_a_sentence_and_nothing_is_written(
    run: Run, files: Path, arguments: tuple[str, ...], clue: str
) -> None:
    graph = sb.Graph.from_edges(3, [(0, 1), (1, 2)])
    for name, problem in {"i.json": sb.Problem(graph, 1.0), "scores.json": sb.Problem.bounded(graph, 1.0)}.items():
        (files / name).write_text(json.dumps(sb.Instance(problem, labels=["a", "b", "c"]).as_dict()))
    there = sorted(files.iterdir())
    refused = run("plan", *arguments)
    assert (refused.code, refused.stdout) == (1, "") and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert sorted(files.iterdir()) == there


def test_plan_shows_a_dash_for_a_bound_that_is_not_known(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    file.write_text(json.dumps(SCORES.as_dict()))
    shown = run("plan", str(file), "--quick").stdout
    assert "no lower bound is known for scores" in shown and "nan" not in shown
    assert any(line.split()[-1] == "-" for line in shown.splitlines() if line.startswith("with the graph"))


def test_plan_says_what_the_spread_of_scores_means(run: Run, tmp_path: Path) -> None:
    file, past = tmp_path / "scores.json", tmp_path / "past.csv"
    file.write_text(json.dumps(SCORES.as_dict()))
    assert "--observations would tell" in run("plan", str(file), "--quick").stdout
    past.write_text("label,outcome\n0,0.8\n0,0.86\n1,0.2\n1,0.25\n2,0.3\n2,0.35\n")
    shown = run("plan", str(file), "--quick", "--observations", str(past)).stdout
    assert "the scores of an option vary by 0.0" in shown and "of the most that the range allows" in shown
    past.write_text("label,outcome\n0,1\n0,0\n0,1\n1,0\n2,0\n")
    shown = run("plan", str(file), "--quick", "--observations", str(past)).stdout
    assert "all outcomes are ends of the range: if no others can occur, say so (--binary)" in shown


def test_a_budget_is_told_and_drawn(run: Run, tmp_path: Path) -> None:
    file, picture = tmp_path / "i.json", tmp_path / "b.png"
    problem = sb.Problem(sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), 9.0, 1.0)
    file.write_text(json.dumps(sb.Instance(problem, [0.0, 1.0, 2.4, 2.8]).as_dict()))
    options = ("--budget", "100", "--runs", "2", "--jobs", "1", "--delta", "0.1")
    shown = run("plan", str(file), *options, "--plot", str(picture))
    assert shown.code == 0 and picture.read_bytes().startswith(b"\x89PNG")
    for words in ("With 80% probability 100 trials find an option within", "options are left on average", "in time"):
        assert words in shown.stdout
    document = json.loads(run("plan", str(file), *options, "--json").stdout)
    assert document["trials"] == 100 and document["curve"][0]["runs"] == 2


@pytest.mark.parametrize("command", [("plan", "--quick"), ("solve",), ("study", "create", "pages")])
def test_sigma_is_never_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, command: tuple[str]) -> None:
    monkeypatch.chdir(tmp_path)
    silent = {"format": "spectralbai-instance/3", "n_arms": 2, "edges": [], "mu": [1, 0], "R": 1.0}
    Path("x.json").write_text(json.dumps(silent))
    for file, stdin in (("x.json", b""), ("-", json.dumps(silent).encode())):
        code, stdout, stderr = run(*command, file, stdin=stdin)
        assert (code, stdout) == (1, "") and stderr.count("\n") == 1
        assert '"sigma" is missing' in stderr and "instance --observations" in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    for said in ({"sigma": 2.0}, {"low": 0, "high": 1}):
        assert run(*command, "-", stdin=json.dumps({**silent, **said}).encode()).code == 0
        (tmp_path / "spectralbai.db").unlink(missing_ok=True)


def test_a_plan_may_say_the_sigma_that_the_file_does_not(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"format": "spectralbai-instance/3", "n_arms": 2, "edges": [], "mu": [1, 0], "R": 1.0}')
    code, stdout, _ = run("plan", str(file), "--sigma", "2", "--quick")
    assert code == 0 and "sigma 2" in stdout


def shop(tmp_path: Path, n: int = 60) -> Path:
    """Returns a table of options in six categories."""
    table = tmp_path / "shop.csv"
    table.write_text("item,kind,price\n" + "".join(f"item {k},kind {k % 6},{k}.5\n" for k in range(n)), "utf-8")
    return table


def test_categories_get_an_R_each_from_a_step_or_from_observations(run: Run, tmp_path: Path) -> None:
    arms = ("--arms", str(shop(tmp_path)), "--by", "kind")
    made = made_instance(run, tmp_path / "a.json", *arms, "--step", "0.1", "--binary")
    assert isinstance(made.problem.graph, Categories) and made.problem.graph.categories[0] == "kind 0"
    assert made.problem.radii.tolist() == pytest.approx([45 * 0.01] * 6)
    same = made_instance(run, tmp_path / "b.json", *arms, "--R", "0.3", "--sigma", "1")
    assert same.problem.radii.tolist() == [0.3] * 6
    rng = np.random.default_rng(0)
    rows = [f"item {k},{0.3 * (k % 6) + 0.1 * rng.standard_normal()}\n" for k in range(30) for _ in range(3)]
    pilot = tmp_path / "pilot.csv"
    pilot.write_text("label,outcome\n" + "".join(rows), "utf-8")
    out = tmp_path / "c.json"
    done = run("instance", *arms, "--observations", str(pilot), "--out", str(out))
    assert (done.code, done.stderr) == (0, "")
    assert "60 options, 6 categories" in done.stdout and "as observed (about" in done.stdout
    learnt = sb.Instance.from_dict(json.loads(out.read_text("utf-8")))
    assert (learnt.problem.radii > 0).all() and learnt.problem.radii.max() < 45 * 0.1**2
    planned = run("plan", str(out), "--quick")
    assert planned.code == 0 and "60 options, 6 categories" in planned.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "kind", "--binary"), "--step is needed: how far two options of one category differ; or --R, or"),
        (("--by", "item", "--step", "0.1", "--binary"), 'the column "item" is different for every option: it tells'),
        (("--by", "kin", "--step", "0.1", "--binary"), 'there is no column "kin"; did you mean "kind"?'),
        (("--by", "kind", "--features", "price", "--binary"), "--features and --by both make the graph; keep one"),
        (
            ("--by", "kind", "--step", "1e200", "--sigma", "1"),
            "--step must be a number whose square is finite, got 1e+200",
        ),
    ],
)
def test_categories_that_cannot_be_used_are_refused(
    run: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = run("instance", "--arms", str(shop(tmp_path)), *options, "--out", str(tmp_path / "x.json"))
    assert done.code == 1 and message in done.stderr
    assert not (tmp_path / "x.json").exists()


def test_a_plan_for_many_options_in_categories_says_what_it_leaves_out(run: Run, tmp_path: Path) -> None:
    made = sb.instances.catalogue(6, 100, spread=0.003)
    file = tmp_path / "many.json"
    file.write_text(json.dumps(made.as_dict()), "utf-8")
    done = run("plan", str(file), "--quick")
    assert done.code == 0
    assert "601 options, 7 categories" in done.stdout
    assert "other values of R and of the tolerance are tried one at a time" in done.stdout
    solved = json.loads(run("solve", str(file), "--json").stdout)
    assert solved["solver"] == "catalogue" and solved["lower"] <= solved["upper"]


def test_a_table_of_outcomes_says_what_trials_on_items_save(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    outcomes = 0.5 * rng.random(60) + 0.1 * rng.random((3, 60)) + [[0.0], [0.02], [0.05]]
    problem = sb.Problem.bounded(sb.Graph.from_edges(3, []), R=np.inf, tolerance=0.02)
    file, table = tmp_path / "i.json", tmp_path / "t.csv"
    file.write_text(json.dumps(sb.Instance(problem, labels=["a", "b", "c"]).as_dict()))
    rows = zip("cab", outcomes[[2, 0, 1]], strict=True)  # in another order than the instance
    lines = [",".join([label, *(f"{value:.3f}" for value in row)]) for label, row in rows]
    table.write_text("\n".join([",".join(["option", *(f"q{j}" for j in range(60))]), *lines]) + "\n")
    done = run("plan", str(file), "--table", str(table), "--length", "200", "--runs", "3", "--jobs", "1")
    assert done.code == 0 and "a list of 200 items" in done.stdout and "pairing saves" in done.stdout
    table.write_text(table.read_text().replace("c,", "d,", 1))
    refused = run("plan", str(file), "--table", str(table))
    assert refused.code == 1 and "lacks the option 'c'" in refused.stderr
    assert "give --table too" in run("plan", str(file), "--length", "9").stderr
    assert "leave out" in run("plan", str(file), "--table", str(table), "--quick").stderr
