"""Calls of Python with values at the edges: `python -m verification.edges [--calls N]`.

Each call has one argument replaced by a value at the edge of what numbers, texts and lists can be. It may return, or
raise an exception of this package with a sentence; anything else ends this.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import spectralbai as sb
from spectralbai.inputs.from_tables import Choices, instance_from
from spectralbai.inputs.table import CsvTable

EDGES: tuple[Any, ...] = (
    *(0, -0.0, -1, 1, 2, 5e-324, 1e-300, 1e-17, 0.5, 1 - 1e-16, 1e300, 1.7976931348623157e308),
    *(math.nan, math.inf, -math.inf, 10**15, 10**15 + 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**300, 10**400, -(10**400)),
    *(Fraction(10**400, 3), Fraction(1, 10**400), True, None, np.float32(0.1), np.int8(1), np.bool_(True), 1j),
    *("", "x", "0.5", "\ud800", "a\u0301", "\u200b", "\x00", "1" * 400, "1e400", "=1+1", b"x", "nan"),
    *([], {}, (), set(), object(), [[]], [None], ["x"], [math.nan], [10**400], np.zeros(0), np.array(1.0)),
)
"""Values at the edges."""
GRAPH = sb.Graph.from_edges(3, [(1, 2)])
PROBLEM = sb.Problem(GRAPH, R=0.01, sigma=1.0)
BINARY = sb.Instance(sb.Problem.bounded(GRAPH, 0.01, 0.0, 1.0, 0.02, binary=True), labels=["a", "b", "c"])
MU = [0.9, 0.5, 0.6]
TABLE = "label,x,y\na,1,0.2\nb,2,0.3\nc,3,0.9\n"


def calls(studies: sb.Studies) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Returns functions, each with arguments that it takes."""
    study = studies.open("there")
    document = BINARY.as_dict()

    def ticket_told(outcome: Any) -> object:
        return study.tell(study.ask()[0], outcome)

    def from_document(key: Any, value: Any) -> object:
        return sb.Instance.from_dict({**document, key: value})

    def created(name: Any, **given: Any) -> None:
        made = studies.create(name, BINARY, **given)
        made.status()
        studies.delete(made.name)

    def from_table(text: str = TABLE, **given: Any) -> object:
        chosen = {"features": "x", "R": 0.1, "sigma": 1.0, "called": str, **given}
        return instance_from(Choices(**chosen), CsvTable.named("arms", text), None, None)

    return {
        "from_edges": (sb.Graph.from_edges, {"n_arms": 3, "edges": [(0, 1)]}),
        "edge": (lambda a, b, w: sb.Graph.from_edges(3, [(a, b, w)]), {"a": 0, "b": 1, "w": 1.0}),
        "from_features": (sb.Graph.from_features, {"features": [[0.0], [1.0], [5.0]], "neighbors": 1}),
        "feature": (lambda x: sb.Graph.from_features([[x], [1.0], [5.0]], neighbors=1), {"x": 0.0}),
        "from_weights": (sb.Graph.from_weights, {"weights": [[0.0, 1.0], [1.0, 0.0]]}),
        "from_categories": (sb.Graph.from_categories, {"labels": ["a", "a", "b"]}),
        "Problem": (sb.Problem, {"graph": GRAPH, "R": 0.01, "sigma": 1.0, "tolerance": 0.0}),
        "bounded": (sb.Problem.bounded, {"graph": GRAPH, "R": 0.01, "low": 0.0, "high": 1.0, "tolerance": 0.0}),
        "Instance": (sb.Instance, {"problem": PROBLEM, "mu": MU, "labels": ["a", "b", "c"]}),
        "label": (lambda label: sb.Instance(PROBLEM, MU, [label, "b", "c"]), {"label": "a"}),
        **{
            f"document {key}": (lambda value, key=key: from_document(key, value), {"value": document[key]})
            for key in document
        },
        "table": (from_table, {"step": None, "neighbors": 1, "tolerance": 0.0, "R": 0.1, "sigma": 1.0}),
        "cell": (lambda cell: from_table(TABLE.replace("0.3", str(cell)), guess="y"), {"cell": 0.3}),
        "solve": (lambda mu, tol: sb.solve_allocation(PROBLEM, mu, tol=tol), {"mu": MU, "tol": 1e-3}),
        "mean": (lambda x: sb.solve_allocation(PROBLEM, [x, 0.5, 0.6], tol=1e-3), {"x": 0.9}),
        "alternative": (partial(sb.closest_alternative, PROBLEM), {"mu": MU, "omega": [0.4, 0.3, 0.3], "best": None}),
        "estimate": (partial(sb.estimate, PROBLEM), {"counts": [1, 2, 3], "means": MU}),
        "lower_bound": (partial(sb.lower_bound, PROBLEM), {"mu": MU, "delta": 0.1}),
        "SpectralRace": (lambda delta: sb.SpectralRace(PROBLEM, delta).init(), {"delta": 0.1}),
        "SpectralTaS": (lambda delta: sb.SpectralTaS(PROBLEM, delta).init(), {"delta": 0.1}),
        "simulate": (
            lambda mu, seed, most: sb.simulate.run(sb.SpectralRace(PROBLEM, 0.3), mu, seed=seed, max_samples=most),
            {"mu": MU, "seed": 1, "most": 20},
        ),
        "create": (created, {"name": "e", "delta": 0.1, "goal": "max", "budget": 9, "until": 4e9, "failed_as": 0.0}),
        "ask": (study.ask, {"n": 1, "worker": "w", "lease": 60.0}),
        "key": (lambda key: study.ask(1, key=key), {"key": "k"}),
        "tell": (ticket_told, {"outcome": 1.0}),
        "ticket": (lambda ticket: study.tell(ticket, 1.0), {"ticket": "t"}),
        "failure": (lambda reason: ticket_told(sb.study.Failure(reason)), {"reason": "rain"}),
        "add": (study.add, {"labels": ["a"], "outcomes": [1.0], "origin": "o"}),
        "added": (lambda x, origin: study.add(["a"], [x], origin), {"x": 1.0, "origin": "p"}),
        "counts": (lambda n, k, id: study.tell_counts({"a": (n, k)}, id, past=True), {"n": 5, "k": 2, "id": "day"}),
        "open": (studies.open, {"name": "there"}),
        "withdraw": (study.withdraw, {"label": "zzz"}),
        "status": (study.status, {"control": "a", "patience": 1.0}),
        "recent": (study.recent, {"most": 5, "before": None}),
        "verdicts": (study.verdicts, {"most": 5}),
        "import": (lambda document: studies.import_(document, "i"), {"document": {}}),
        "Client": (lambda url, token: sb.Client(url, token), {"url": "http://localhost:1", "token": "t"}),
    }


def campaign(most: int, storage: str, seed: int = 0) -> Counter[str]:
    """Makes so many calls; returns how many returned, and how many were refused."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    with sb.Studies(storage) as studies:
        studies.create("there", BINARY)
        known = calls(studies)
        every = [(name, argument, edge) for name, (_, given) in known.items() for argument in given for edge in EDGES]
        rng.shuffle(every)
        wrong = []
        for name, argument, edge in every[:most]:
            call, given = known[name]
            try:
                call(**{**given, argument: edge})
                counts["returned"] += 1
            except sb.SpectralBAIError as error:
                if not str(error) or "\n" in str(error):
                    wrong.append((name, argument, edge, "no sentence"))
                counts["refused"] += 1
            except Exception as error:
                wrong.append((name, argument, edge, repr(error)))
        for each in wrong:
            print(*(ascii(part)[:150] for part in each), sep=" | ")
        if wrong:
            raise SystemExit(f"{len(wrong)} calls ended otherwise than by a sentence")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3_000)
    chosen = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = campaign(chosen.calls, f"sqlite:///{Path(folder) / 'edges.db'}")
    said = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    print(f"{counts.total():,} calls with values at the edges: {said}; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
