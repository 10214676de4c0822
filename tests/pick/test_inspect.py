"""The early stopping of the example for inspect_ai, driven as inspect_ai drives it, which need not be installed."""

from __future__ import annotations

import asyncio
import importlib
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import spectralbai as sb

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = {
    "inspect_ai": ("Task", "eval"),
    "inspect_ai.dataset": ("MemoryDataset", "Sample"),
    "inspect_ai.model": ("ChatMessage", "GenerateConfig", "ModelOutput", "ModelUsage", "get_model"),
    "inspect_ai.scorer": ("SampleScore", "match", "value_to_float"),
    "inspect_ai.solver": ("generate",),
    "inspect_ai.tool": ("ToolChoice", "ToolInfo"),
    "inspect_ai.util": ("EarlyStop",),
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the example, with what it imports from inspect_ai."""
    for name, contents in NAMES.items():
        module = ModuleType(name)
        vars(module).update(dict.fromkeys(contents, SimpleNamespace))
        monkeypatch.setitem(sys.modules, name, module)
    vars(sys.modules["inspect_ai.scorer"])["value_to_float"] = lambda: float
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("inspect_pick")
    for name in ("inspect_pick", "answer"):
        sys.modules.pop(name, None)


def test_pairs_that_the_study_needs_are_run_and_the_others_are_skipped(example: Any, tmp_path: Path) -> None:
    options, items = ["a", "b", "c"], [f"q{j}" for j in range(40)]
    problem = sb.Problem.bounded(
        sb.Graph.from_edges(3, []), math.inf, 0, 1, tolerance=0.05, items=sb.Items.listed(len(items))
    )
    pairs = {f"{a} | {j}": (a, j) for j in items for a in options}
    run: list[tuple[str, str]] = []

    async def sample(race: Any, id_: str, rng: random.Random) -> int:
        if await race.schedule_sample(id_, 1) is not None:
            return 1
        await asyncio.sleep(0.001 * rng.random())
        run.append(pairs[id_])
        score = {"a": 0.1, "b": 0.9, "c": 0.3}[pairs[id_][0]]
        await race.complete_sample(id_, 1, {"match": SimpleNamespace(score=SimpleNamespace(value=score))})
        return 0

    async def task(race: Any) -> int:
        rng = random.Random(0)
        assert await race.start_task(None, [], 1) == "spectralbai"
        skipped = sum(await asyncio.wait_for(asyncio.gather(*(sample(race, id_, rng) for id_ in pairs)), 60))
        assert "Decided" in (await race.complete_task())["answer"]
        return skipped

    instance = sb.Instance(problem, labels=options)
    with sb.Study.create("inspect", instance, storage=f"sqlite:///{tmp_path}/x.db", items=items, seed=1) as study:
        lost = study.ask(2)  # by an evaluation that was killed
        skipped = asyncio.run(task(example.Race(study, pairs)))
        assert len(run) == len(set(run)) == study.status().results and skipped == len(pairs) - len(run) > 0
        assert study.status().best == "b" and {(t.label, t.item) for t in lost} <= set(run)
        with pytest.raises(ValueError, match="repetitions are items"):
            asyncio.run(example.Race(study, pairs).start_task(None, [], 2))
