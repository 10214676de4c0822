"""Picks of the example of the README, killed and interrupted at random instants: nothing is lost, nothing counts twice.

`python -m verification.pick [--kills N]`. First the command that the README shows has to decide. Then searches are
killed, terminated or interrupted, and started again, until they decide. With one job, the answer and every trial must
be those of an undisturbed search. With four, every pair must count once, and a pair may have been run again only if it
was under way when a search ended.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import spectralbai as sb
from examples import answer

ROOT = Path(__file__).parent.parent
SCORE = '#!/bin/sh\necho "$1 $2" >> runs\nexec cat "scores/$1/$2"\n'
"""Writes down that it runs, and prints a score that is known."""
ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130
Trials = list[tuple[str, str | None, float]]


@dataclass(frozen=True)
class Search:
    """A search in a folder of its own, which has the scores of every pair."""

    folder: Path
    jobs: int
    tolerance: float
    seed: int

    @classmethod
    def prepared(
        cls, folder: Path, scores: Sequence[Sequence[float]], jobs: int, tolerance: float = 0.02, seed: int = 0
    ) -> Search:
        """Returns a search for the best row of a matrix of scores between 0 and 1."""
        for a, row in enumerate(scores):
            (folder / "scores" / str(a)).mkdir(parents=True)
            for j, score in enumerate(row):
                (folder / "scores" / str(a) / str(j)).write_text(f"{score}\n")
        (folder / "options.txt").write_text("".join(f"{a}\n" for a in range(len(scores))))
        (folder / "items.txt").write_text("".join(f"{j}\n" for j in range(len(scores[0]))))
        (folder / "score").write_text(SCORE)
        (folder / "score").chmod(0o755)
        return cls(folder, jobs, tolerance, seed)

    def start(self) -> subprocess.Popen[str]:
        numbers = {"--jobs": self.jobs, "--tolerance": self.tolerance, "--seed": self.seed, "--low": 0, "--high": 1}
        words = ["pick", "options.txt", "items.txt", "--run", "./score {option} {item}", "--name", "pick"]
        for option, number in numbers.items():
            words += [option, str(number)]
        command = [sys.executable, "-m", "spectralbai", *words]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self) -> str:
        """Brings the search to its end; returns the answer."""
        process = self.start()
        stdout, stderr = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"the search ended with {process.returncode}: {stderr}")
        return stdout

    def end(self, process: subprocess.Popen[str], how: signal.Signals) -> None:
        """Ends a search; it may be Ctrl-C, which is answered, unless the answer of the search is printed already."""
        process.send_signal(how)
        stdout, stderr = process.communicate()
        printed = "The report is in" in stdout
        if how == signal.SIGINT and process.returncode not in ((0, -signal.SIGINT) if printed else (INTERRUPTED,)):
            raise SystemExit(f"an interrupted search ended with {process.returncode}: {stderr}")

    def without_outcome(self) -> Counter[tuple[str, str | None]]:
        """Returns the pairs that were handed out and have no outcome, each as often as that happened."""
        try:
            with sb.Study.open("pick", self._storage) as study:
                labels, item_name = study.definition.instance.labels, study.definition.item_name
                tickets = study.records().tickets
        except sb.NotFound:  # it was ended before there was a study
            return Counter()
        return Counter((labels[ticket.arm], item_name(ticket.item)) for ticket in tickets if ticket.result is None)

    def trials(self) -> Trials:
        """Returns the trials that count, in their order."""
        with sb.Study.open("pick", self._storage) as study:
            definition = study.definition
            return [
                (definition.instance.labels[each.arm], definition.item_name(each.item), each.outcome)
                for each in study.records().observations
            ]

    def runs(self) -> Counter[tuple[str, ...]]:
        """Returns how often each pair was run."""
        return Counter(tuple(line.split()) for line in (self.folder / "runs").read_text().splitlines())

    @property
    def _storage(self) -> str:
        return f"sqlite:///{self.folder}/spectralbai.db"


def disturbed(search: Search, rng: random.Random, kills: int, within: tuple[float, float]) -> tuple[int, int, str]:
    """Ends a search up to `kills` times, each so many seconds after its start, and then lets it finish; checks that
    each pair counts once, and that only pairs under way were run again. Returns (times it was ended, runs repeated,
    its answer)."""
    lost: Counter[tuple[str, str | None]] = Counter()
    done = 0
    while done < kills:
        process = search.start()
        try:
            process.wait(rng.uniform(*within))
            process.communicate()
            break
        except subprocess.TimeoutExpired:
            search.end(process, rng.choice(ENDS))
            done += 1
        lost = search.without_outcome()
    stdout = search.finish()
    trials, runs = search.trials(), search.runs()
    pairs = Counter((label, item) for label, item, _ in trials)
    twice = [pair for pair, count in pairs.items() if count > 1]
    if twice:
        raise SystemExit(f"counted twice: {twice[:5]}")
    again = {pair: count - 1 for pair, count in runs.items() if count > 1}
    if any(extra > lost[(pair[0], pair[1])] for pair, extra in again.items()):
        raise SystemExit(f"run again without being under way: {again} but {lost}")
    if any(runs[label, str(item)] == 0 for label, item, _ in trials):
        raise SystemExit("a result of a pair that was never run")
    return done, sum(again.values()), stdout


def example() -> list[list[float]]:
    """Returns what the example of the README scores for every pair."""
    prompts, questions = (
        list(csv.DictReader((ROOT / "examples" / f"{name}.csv").read_text("utf-8").splitlines()))
        for name in ("prompts", "questions")
    )
    return [[float(answer.model(p["prompt"], q["question"]) == q["answer"]) for q in questions] for p in prompts]


def of_readme() -> list[str]:
    """Returns the words of the first pick in the README."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"\n    (spectralbai pick examples/(?:.*\\\n)*.*)\n", text)
    assert found is not None, "the README begins with a pick"
    return shlex.split(found[1].replace("\\\n", ""))


def as_shown(folder: Path) -> str:
    """Runs the command that the README shows, in a folder; returns its answer."""
    (folder / "examples").symlink_to(ROOT / "examples")
    command = [sys.executable, "-m", *of_readme()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("Decided after") or not (folder / "report.html").is_file():
        raise SystemExit(f"the command of the README ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    kills = parser.parse_args().kills
    rng, scores = random.Random(0), example()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def place(what: str) -> Path:
            (folder / what).mkdir()
            return folder / what

        begin = time.monotonic()
        saved = re.search(r"This took .*", as_shown(place("readme")))
        assert saved is not None
        print(f"the command of the README: {saved[0]} ({time.monotonic() - begin:.0f} s)", flush=True)
        calm = Search.prepared(place("calm"), scores, 1)
        undisturbed = calm.finish()
        for jobs in (1, 4):
            done = again = searches = 0
            while done < kills / 2:
                search = Search.prepared(place(f"{jobs} jobs, {searches}"), scores, jobs)
                ends, repeated, stdout = disturbed(search, rng, round(kills / 2) - done, (1.0, 6.0))
                done, again, searches = done + ends, again + repeated, searches + 1
                if jobs == 1 and (stdout != undisturbed or search.trials() != calm.trials()):
                    raise SystemExit("a search with one job did not go on as if it had not been disturbed")
            same = "; answers and trials as undisturbed" if jobs == 1 else ""
            print(
                f"{jobs} at once: ended {done} times in {searches} searches, {again} runs repeated, none lost, none "
                f"counted twice{same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
