"""Plans from a pilot table: what is replayed, what is saved, what is said."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectralbai import Graph, Instance, InvalidInput, Items, Problem, SpectralRace, plan_items
from spectralbai.planning import TablePlan
from spectralbai.policy import Policy
from spectralbai.simulate import Run, replay, seed_of

PATH = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
RNG = np.random.default_rng(0)
HARD = 0.2 * RNG.standard_normal(60)
TABLE = np.clip(np.array([[0.64], [0.6], [0.56], [0.52]]) - HARD + 0.05 * RNG.standard_normal((4, 60)), 0, 1)


def instance_of(R: float = math.inf, tolerance: float = 0.01) -> Instance:
    return Instance(Problem.bounded(PATH, R=R, tolerance=tolerance))


@pytest.fixture(scope="module")
def planned() -> TablePlan:
    return plan_items(instance_of(R=0.05), TABLE, delta=0.1, length=90, runs=3, seed=5)


def test_every_way_is_replayed_with_the_graph_and_without(planned: TablePlan) -> None:
    fresh, listed = Items.fresh(), Items.listed(90)
    assert [(way.items, way.graph) for way in planned.ways] == [
        (items, graph) for graph in (False, True) for items in (fresh, listed, None)
    ]
    assert planned.listed == listed and planned.n_items == 60
    runs = [
        replay(SpectralRace(Problem.bounded(PATH, R=0.05, tolerance=0.01, items=fresh), 0.1), TABLE, seed_of(5, k)).tau
        for k in range(3)
    ]
    assert planned.way(fresh, graph=True).mean == pytest.approx(np.mean(runs))
    with pytest.raises(InvalidInput, match="way of this plan"):
        planned.way(Items.listed(7))


def test_pairing_saves_where_the_same_items_are_hard_for_all(planned: TablePlan) -> None:
    fresh = Items.fresh()
    saved = planned.saved_by_pairing(fresh)
    assert saved == 1 - planned.way(fresh).mean / planned.way(None).mean and saved > 0.3
    assert planned.saved_by_graph(None) == 1 - planned.way(None, graph=True).mean / planned.way(None).mean
    assert f"pairing saves {saved:.0%}" in planned.advice and "of the whole table of 360" in planned.advice


def test_a_list_of_the_length_of_the_table_is_the_table() -> None:
    found = plan_items(instance_of(), TABLE[:, :12], runs=2)
    assert [way.graph for way in found.ways] == [False] * 3 and found.listed == Items.listed(12)
    problem = Problem.bounded(PATH, R=math.inf, tolerance=0.01, items=Items.listed(12))
    runs = [replay(SpectralRace(problem, 0.05), TABLE[:, :12], seed_of(0, k)).tau for k in range(2)]
    assert found.way(Items.listed(12)).mean == np.mean(runs) <= 48
    assert "graph" not in found.advice


def test_a_shorter_list_has_no_item_twice_and_a_longer_one_draws_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.tile(np.linspace(0, 1, 12), (4, 1))
    drawn: list[np.ndarray] = []

    def caught(policy: Policy, table: np.ndarray, seed: int, max_samples: int) -> Run:
        drawn.append(table[0])
        return replay(policy, table, seed, max_samples)

    monkeypatch.setattr("spectralbai.planning.from_table.replay", caught)
    for length in (11, 30):
        drawn.clear()
        plan_items(instance_of(tolerance=0.5), table, runs=2, length=length)
        lists = [row for row in drawn if row.size == length]
        assert len(lists) == 2 and all(np.isin(row, table[0]).all() for row in lists)
        assert all(np.unique(row).size == length for row in lists) == (length == 11)


def test_a_table_rougher_than_R_is_planned_without_the_graph() -> None:
    found = plan_items(instance_of(R=0.001), TABLE[:, :12], runs=1, length=6)
    assert found.rough and not any(way.graph for way in found.ways)
    assert "choose a larger R" in found.advice and found.way(Items.listed(6)).mean <= 24


def test_plans_do_not_depend_on_the_executor_and_have_a_document(planned: TablePlan) -> None:
    calls: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as executor:
        again = plan_items(
            instance_of(R=0.05),
            TABLE,
            delta=0.1,
            length=90,
            runs=3,
            seed=5,
            executor=executor,
            on_run=lambda *done: calls.append(done),
        )
    assert again.as_dict() == planned.as_dict()
    assert calls[-1] == (18, 18)
    document = json.loads(json.dumps(planned.as_dict(), allow_nan=False))
    assert document["ways"][1]["items"] == {"listed": 90} and document["ways"][1]["forecast"]["lower_bound"] is None
    assert "paired, fresh items, with the graph" in planned._repr_html_()


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs outcomes in a range, got sigma 1"):
        plan_items(Instance(Problem(PATH, R=1.0)), TABLE)
    with pytest.raises(InvalidInput, match="must be a spectralbai.Instance"):
        plan_items(Problem.bounded(PATH, R=1.0), TABLE)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(InvalidInput, match="`length`"):
        plan_items(instance_of(), TABLE, length=0)
    with pytest.raises(InvalidInput, match="`table`"):
        plan_items(instance_of(), TABLE[:3])
