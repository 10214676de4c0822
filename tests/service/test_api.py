"""The API as programs in other languages see it."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service import models, tells
from spectralbai.service.routes.views import _rivals
from spectralbai.study import table_as_csv
from spectralbai.study.upkeep import Upkeep
from spectralbai.verdict import Verdict
from tests.study.contract import CLICKS, ITEMS, LABELS, MEANS, SCORES, ItemStudyContract, answered, drive, on_items

TABLE = "label,milligrams,form\nplacebo,0,pill\n10 mg,10,pill\n20 mg,20,syrup\n40 mg,40,syrup\n"


def created(http: TestClient, name: str = "pages", **change: Any) -> dict[str, Any]:
    body = {"name": name, "instance": CLICKS.as_dict(), **change}
    answer = http.post("/api/studies", json=body)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_a_study_from_creation_to_results(http: TestClient) -> None:
    assert created(http)["definition"]["delta"] == 0.05
    asked = http.post("/api/studies/pages/ask", json={"n": 3, "worker": "server 1"}).json()
    assert asked["answer"] is None
    tickets = asked["tickets"]
    assert [each["ticket"] for each in http.get("/api/studies/pages/tickets").json()["tickets"]] == sorted(
        each["ticket"] for each in tickets
    )
    results = [{"ticket": tickets[0]["ticket"], "outcome": 1}, {"ticket": tickets[1]["ticket"], "failed": "no answer"}]
    told = http.post("/api/studies/pages/tell", json={"results": results})
    assert told.json() == {"recorded": 2, "known": 0}
    found = http.get("/api/studies/pages/results").json()
    assert found["next"] is None
    assert [(each["label"], each["outcome"], each["worker"]) for each in found["results"]] == [
        (tickets[0]["label"], 1.0, "server 1")
    ]
    lines = http.get("/api/studies").json()
    assert [(each["name"], each["results"]) for each in lines["studies"]] == [("pages", 1)]


def test_results_come_in_pages_newest_first(http: TestClient) -> None:
    created(http)
    rows = [{"label": label, "outcome": 1.0} for label in LABELS]
    http.post("/api/studies/pages/results", json={"origin": "before", "rows": rows})
    first = http.get("/api/studies/pages/results?limit=3").json()
    assert [each["number"] for each in first["results"]] == [5, 4, 3]
    second = http.get(f"/api/studies/pages/results?limit=3&before={first['next']}").json()
    assert ([each["label"] for each in second["results"]], second["next"]) == (["warm", "plain"], None)


def test_studies_come_in_pages(http: TestClient) -> None:
    for name in "abc":
        created(http, name)
    first = http.get("/api/studies?limit=2").json()
    assert ([each["name"] for each in first["studies"]], first["next"]) == (["a", "b"], "b")
    second = http.get("/api/studies?limit=2&after=b").json()
    assert ([each["name"] for each in second["studies"]], second["next"]) == (["c"], None)
    assert http.get("/api/studies?after=x").status_code == 404


def test_a_creation_that_is_repeated_finds_its_study(http: TestClient) -> None:
    body = {"name": "twice", "instance": SCORES.as_dict()}
    key = {"Idempotency-Key": "a"}
    assert [http.post("/api/studies", json=body, headers=key).status_code for _ in range(2)] == [201, 200]
    assert http.post("/api/studies", json=body).status_code == 409
    other = http.post("/api/studies", json={**body, "delta": 0.1}, headers=key)
    assert (other.status_code, other.json()["kind"]) == (409, "conflict")
    late = http.post("/api/studies", json={**body, "name": "late", "until": 1.0}, headers=key)
    assert late.status_code == 422 and "`until` must be in the future" in late.json()["detail"]


def test_a_creation_with_items_that_is_repeated_finds_its_study_whatever_their_order(http: TestClient) -> None:
    instance = on_items(SCORES, sb.Items.fresh(3)).as_dict()
    body = {"name": "twice", "instance": instance, "items": ["a", "b", "c"]}
    key = {"Idempotency-Key": "a"}
    statuses = [http.post("/api/studies", json=body | {"seed": seed}, headers=key).status_code for seed in (1, 2)]
    assert statuses == [201, 200]
    for items in (["a", "b", "d"], None):
        assert http.post("/api/studies", json=body | {"items": items}, headers=key).status_code == 409
    tickets = http.post("/api/studies/twice/ask", json={"n": 2}).json()["tickets"]
    assert {each["item"] for each in tickets} <= {"a", "b", "c"}
    assert http.get("/api/studies/twice/status").json()["items"]["available"] == 3


def test_outcomes_on_items_are_there_for_their_picture(http: TestClient, studies: sb.Studies) -> None:
    study = studies.create("items", ItemStudyContract.LISTED, 0.05, items=ITEMS, seed=1)
    empty = http.get("/api/studies/items/outcomes").json()
    assert (empty["items"], empty["outcomes"], empty["begun"], empty["available"]) == ([], [[]] * 5, 0, 40)
    answered(study)
    table, whole = study.table(), http.get("/api/studies/items/outcomes").json()
    assert whole["options"][0] == "plain" and sorted(whole["options"]) == sorted(LABELS)
    assert (whole["items"], whole["low"], whole["high"]) == (list(table.items), 0.0, 1.0)
    assert whole["begun"] == table.n_items
    for label, row in zip(whole["options"], whole["outcomes"], strict=True):
        expected = table.outcomes[LABELS.index(label)].tolist()
        assert row == [None if math.isnan(each) else each for each in expected]
    some = http.get("/api/studies/items/outcomes?options=2&limit=3").json()
    assert (some["options"], len(some["outcomes"][1]), some["begun"]) == (whole["options"][:2], 3, table.n_items)
    assert (some["items"][0], some["items"][-1]) == (table.items[0], table.items[-1])
    assert http.get("/api/studies/items/table.csv").text == table_as_csv(table)
    created(http)
    assert http.get("/api/studies/pages/outcomes").json()["available"] is None
    assert http.get("/api/studies/pages/table.csv").status_code == 422


def test_an_instance_of_options_on_items_needs_no_options_that_are_alike(http: TestClient) -> None:
    body = {"arms": TABLE, "binary": True, "tolerance": 0.1, "items": {"listed": 30}}
    made = http.post("/api/instances", json=body).json()["instance"]
    assert (made["items"], made["edges"], made["R"], made["tolerance"]) == ({"listed": 30}, [], "inf", 0.1)
    alike = http.post("/api/instances", json=body | {"features": "milligrams", "step": 0.1}).json()["instance"]
    assert alike["items"] == {"listed": 30} and alike["edges"]
    for change, words in (
        ({"items": 30}, "`items` must be"),
        ({"arms": None}, "`arms` is needed: a table with a row for each option"),
        ({"items": None}, "`features` is needed"),
        ({"binary": False, "sigma": 1.0}, "`items` must be Items.fresh() where outcomes have no range"),
    ):
        answer = http.post("/api/instances", json=body | change)
        assert answer.status_code == 422 and words in answer.json()["detail"]


def test_a_join_that_is_repeated_is_done_once(http: TestClient) -> None:
    created(http)
    more = sb.Instance(
        sb.Problem.bounded(sb.Graph.from_edges(6, [(1, 2), (3, 4)]), R=0.01, binary=True), labels=(*LABELS, "new")
    )
    checked = http.post("/api/studies/pages/join", json={"instance": more.as_dict(), "check": True}).json()
    assert (checked["joined"], checked["changes"]) == (["new"], "1 option joined (new); 3 components became 4")
    assert http.get("/api/studies/pages").json()["definition"]["instance"]["labels"] == list(LABELS)
    answers = [
        http.post("/api/studies/pages/join", json={"instance": more.as_dict()}, headers={"Idempotency-Key": "a"})
        for _ in range(2)
    ]
    assert [each.status_code for each in answers] == [200, 200]
    assert [each.json()["joined"] for each in answers] == [["new"], ["new"]]
    assert http.post("/api/studies/pages/join", json={"instance": more.as_dict()}).status_code == 422


def test_a_status_shows_pages_of_arms_the_best_first(http: TestClient, studies: sb.Studies) -> None:
    drive(studies.create("scores", SCORES, 0.05))
    first = http.get("/api/studies/scores/status?limit=2").json()
    assert (first["arms"][0]["label"], len(first["arms"]), first["arms_found"], first["next"]) == ("plain", 2, 5, 2)
    assert first["tables"]["arms"]["rows"][0][0] == "plain *"
    rest = http.get("/api/studies/scores/status?limit=9&after=2").json()
    assert {each["label"] for each in first["arms"] + rest["arms"]} == set(LABELS)
    found = http.get("/api/studies/scores/status?search=WARM").json()
    assert {each["label"] for each in found["arms"]} == {"warm", "warmer"}
    assert http.get("/api/studies/scores/status?category=x").status_code == 404
    compared = http.get("/api/studies/scores/status?control=cold").json()
    assert compared["control"] == "cold"
    assert len(compared["tables"]["compared"]["rows"]) == 5


def test_the_history_has_what_each_account_lacked(http: TestClient, studies: sb.Studies) -> None:
    study = studies.create("scores", SCORES, 0.05)
    drive(study)
    history = http.get("/api/studies/scores/history").json()
    assert (history["kind"], history["names"]) == ("arms", list(LABELS))
    checks = study.snapshot().verdicts
    assert history["samples"] == [check.samples for check in checks]
    assert history["candidates"][-1] == len(checks[-1].candidates or ())
    assert history["lacking"][-1] == list(checks[-1].lacking or ())
    assert history["left"][-1] == [int(arm in (checks[-1].candidates or ())) for arm in range(5)]


def catalogue(categories: int, each: int) -> sb.Instance:
    names = [f"category {number // each}" for number in range(categories * each)]
    graph = sb.Graph.from_categories(names)
    return sb.Instance(
        sb.Problem.bounded(graph, [0.01] * categories, binary=True), labels=[f"item {n}" for n in range(len(names))]
    )


def test_who_tells_does_not_wait_until_rules_that_take_long_are_read(
    http: TestClient, studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tells, "PATIENCE", 0.01)
    read, released = Upkeep._advance, threading.Event()

    def slowly(*arguments: Any) -> None:
        assert released.wait(30)
        read(*arguments)

    monkeypatch.setattr(Upkeep, "_advance", slowly)
    study = studies.create("slow", SCORES)
    results = [{"ticket": each.id, "outcome": 0.5} for each in study.ask(3)]
    assert http.post("/api/studies/slow/tell", json={"results": results}).json() == {"recorded": 3, "known": 0}
    assert http.get("/api/studies/slow/status").json()["best"] is None
    released.set()
    while http.get("/api/studies/slow/status").json()["best"] is None:
        time.sleep(0.01)


def test_of_many_arms_the_history_has_those_that_are_hardest_to_beat() -> None:
    lacking = np.arange(200.0) % 150
    lacking[149] = 0.0
    chosen = _rivals((Verdict(148, 1.0, 3.0, 10, candidates=tuple(range(200)), lacking=tuple(lacking)),), 200)
    assert chosen == list(range(128, 148))
    assert _rivals((), 200) == list(range(20))


def test_of_thousands_of_arms_history_and_graph_have_the_categories(http: TestClient, studies: sb.Studies) -> None:
    study = studies.create("shop", catalogue(4, 200), 0.05)
    for _ in range(3):
        study.tell_many((ticket, 1.0) for ticket in study.ask(50))
    history = http.get("/api/studies/shop/history").json()
    assert (history["kind"], history["names"]) == ("categories", [f"category {n}" for n in range(4)])
    assert all(sum(each) == total for each, total in zip(history["left"], history["candidates"], strict=True))
    graph = http.get("/api/studies/shop/graph").json()
    assert (graph["nodes"], graph["categories"][0]) == ([], {"name": "category 0", "arms": 200})
    status = http.get("/api/studies/shop/status?category=category 1&limit=7").json()
    assert (status["arms_found"], len(status["arms"])) == (200, 7)
    assert len(status["tables"]["categories"]["rows"]) == 4


def test_a_graph_has_places_for_its_nodes(http: TestClient) -> None:
    created(http)
    graph = http.get("/api/studies/pages/graph").json()
    assert [each["label"] for each in graph["nodes"]] == list(LABELS)
    assert graph["edges"] == [[1, 2, 1.0], [3, 4, 1.0]]


def test_a_graph_of_a_thousand_options_is_drawn_and_one_of_thousands_is_not(http: TestClient) -> None:
    for n in (1000, 2001):
        path = sb.Graph.from_edges(n, [(arm, arm + 1) for arm in range(n - 1)])
        instance = sb.Instance(sb.Problem.bounded(path, R=0.1), labels=tuple(f"item {arm}" for arm in range(n)))
        created(http, f"path {n}", instance=instance.as_dict())
    assert len(http.get("/api/studies/path 1000/graph").json()["nodes"]) == 1000
    refused = http.get("/api/studies/path 2001/graph")
    assert refused.status_code == 422 and "2,001 options and 2,000 edges" in refused.json()["detail"]


def test_long_answers_are_compressed_for_those_who_read_that(http: TestClient) -> None:
    created(http)
    whole = http.get("/api/openapi.json", headers={"Accept-Encoding": "identity"})
    small = http.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in whole.headers and small.headers["content-encoding"] == "gzip"
    assert whole.json() == small.json() and int(small.headers["content-length"]) < len(whole.content) / 4
    assert small.headers["x-content-type-options"] == "nosniff"


def test_a_report_and_an_export_can_be_downloaded(http: TestClient, studies: sb.Studies) -> None:
    drive(studies.create('my "study"', SCORES, 0.05))
    page = http.get("/api/studies/my%20%22study%22/report.html")
    assert page.headers["content-disposition"] == 'attachment; filename="my-study.html"'
    assert page.headers["content-security-policy"] == "sandbox"
    document = http.get("/api/studies/my%20%22study%22/export").json()
    copy = http.post("/api/imports", json={"document": document, "name": "copy"})
    assert copy.status_code == 201
    statuses = [http.get(f"/api/studies/{name}/status").json() for name in ("my%20%22study%22", "copy")]
    assert statuses[0]["answer"] == statuses[1]["answer"]
    again = http.post("/api/imports", json={"document": document, "name": "copy"}, headers={"Idempotency-Key": "a"})
    assert again.status_code == 200
    assert http.get("/api/studies/copy/results.csv").text.startswith("number,label,outcome")


def test_tables_become_an_instance(http: TestClient) -> None:
    answer = http.post(
        "/api/instances", json={"arms": TABLE, "features": "milligrams", "step": 0.15, "sigma": 0.03}
    ).json()
    assert answer["instance"]["labels"] == ["placebo", "10 mg", "20 mg", "40 mg"]
    assert answer["remarks"][0].startswith("4 options, ")
    assert sb.Instance.from_dict(answer["instance"]).problem.graph.n_edges > 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "`arms` or `edges` is needed: a CSV file of options, or of pairs of similar ones"),
        ({"arms": TABLE, "sigma": 1.0}, "`features` is needed to tell which options are alike"),
        ({"arms": TABLE, "features": "milligrams"}, "`sigma` is missing"),
        ({"arms": TABLE, "features": "dose", "sigma": 1.0}, 'arms: there is no column "dose"'),
        ({"arms": "", "features": "dose", "sigma": 1.0}, "arms: the file is empty"),
    ],
)
def test_tables_are_refused_in_the_words_of_the_request(http: TestClient, body: Any, words: str) -> None:
    answer = http.post("/api/instances", json=body)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


def test_a_plan_says_what_to_expect_before_a_study_is_created(http: TestClient) -> None:
    chosen = {"arms": TABLE, "features": "milligrams", "step": 0.15, "sigma": 0.03, "tolerance": 0.1}
    planned = http.post("/api/plan", json=chosen).json()
    assert 0 < planned["expected"] < planned["expected_without_graph"] * 2
    assert planned["advice"] == planned["plan"]["advice"]
    same = http.post("/api/plan", json={"instance": planned["instance"]}).json()
    assert (same["expected"], same["saving"]) == (planned["expected"], planned["saving"])
    both = http.post("/api/plan", json={"instance": planned["instance"], "arms": TABLE})
    assert both.json()["detail"] == "`instance` and `arms` are both given; keep one"


def test_every_route_is_described_with_an_example(http: TestClient) -> None:
    document = http.get("/api/openapi.json").json()
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert len(operations) >= 30
    assert all(each["tags"] and (each.get("description") or each["summary"]) for each in operations)
    assert document["components"]["schemas"]["Creation"]["properties"]["instance"]["examples"] == [models.INSTANCE]
    sb.Instance.from_dict(models.INSTANCE)
    assert all("HTTPValidationError" not in str(each) for each in operations)


def test_counts_and_shares(http: TestClient) -> None:
    created(http)
    rows = [{"label": label, "trials": 20, "successes": round(20 * mean)} for label, mean in MEANS.items()]
    answer = http.post("/api/studies/pages/counts", json={"id": "monday", "rows": rows})
    assert answer.json() == {"recorded": 100, "known": 0}
    shares = http.get("/api/studies/pages/shares").json()["shares"]
    assert [each["label"] for each in shares] == list(LABELS)
    assert http.post("/api/studies/pages/stop").json()["new"] is True
    assert http.delete("/api/studies/pages").json() == {"deleted": "pages"}
    assert http.get("/api/studies/pages").status_code == 404
