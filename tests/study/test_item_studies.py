"""Reports and pictures of studies whose options are tried on items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import spectralbai as sb
from spectralbai import plot
from spectralbai.arrays import Matrix
from spectralbai.plot import plot_outcomes
from spectralbai.report.by_items import MOST_ITEMS
from tests.study.contract import ITEMS, LABELS, TABLE, answered

EDGELESS = sb.Graph.from_edges(5, [])
LISTED = sb.Instance(sb.Problem.bounded(EDGELESS, float("inf"), binary=True, items=sb.Items.listed(40)), labels=LABELS)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The storage of a study on a list of items that has decided."""
    url = f"sqlite:///{tmp_path_factory.mktemp('items') / 's.db'}"
    with sb.Study.create("questions", LISTED, 0.05, url, items=ITEMS, seed=1) as study:
        answered(study)
    return url


def test_differences_are_those_of_the_estimates_and_their_intervals_hold(decided: str) -> None:
    with sb.Study.open("questions", decided) as study:
        status = study.status()
    best = LABELS.index(str(status.best))
    truth = np.mean(TABLE, axis=1)
    for arm, each in enumerate(status.arms):
        if arm == best:
            assert each.behind is None
            continue
        assert each.behind is not None
        mean, low, high = each.behind
        leader = status.arms[best]
        assert mean is not None and low is not None and high is not None
        assert leader.estimate is not None and each.estimate is not None
        assert mean == pytest.approx(leader.estimate - each.estimate)
        assert low <= truth[best] - truth[arm] <= high
        assert -1 < low and high < 1, "more than the range of outcomes says"


def test_a_notebook_says_how_far_the_items_are(decided: str) -> None:
    with sb.Study.open("questions", decided) as study:
        status = study.status()
    assert status.items is not None and "of 40 items are done" in status.items.described
    assert "of 40 items are done" in status._repr_html_()


def test_a_report_compares_on_the_same_items_and_has_a_picture_of_them(
    decided: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def noted(labels: list[str], outcomes: Matrix, *more: Any, **look: Any) -> Axes:
        drawn.append((labels, outcomes, look))
        return plot_outcomes(labels, outcomes, *more, **look)

    monkeypatch.setattr(plot, "plot_outcomes", noted)
    with sb.Study.open("questions", decided) as study:
        report, table = study.report("cold"), study.table()
        page = report.as_html()
    assert "behind the best" in page and "how much better the option marked &quot;*&quot; is" in page
    assert "The limits are from the items that both were tried on: all hold together" in page
    assert report.status.items is not None and "items are done" in page
    assert "The outcomes on the items begun. White pairs were not tried." in page
    assert report.outcomes is not None and np.array_equal(report.outcomes.outcomes, table.outcomes, equal_nan=True)
    ((labels, outcomes, look),) = drawn
    assert labels[0] == "plain" and sorted(labels) == sorted(LABELS)
    for label, row in zip(labels, outcomes, strict=True):
        assert np.array_equal(row, table.outcomes[LABELS.index(label)], equal_nan=True)
    assert look["rates"] is True


def test_pairs_that_were_not_tried_are_white_and_colours_span_the_range() -> None:
    outcomes = np.array([[0.2, 0.4, 0.6], [0.1, np.nan, np.nan]])
    ax = plot_outcomes(["a", "b"], outcomes, (0.0, 1.0), of=30)
    (image,) = ax.images
    shown = image.get_array()
    assert shown is not None and np.array_equal(np.ma.getmaskarray(shown), np.isnan(outcomes))
    assert image.get_clim() == (0.0, 1.0)
    assert image.to_rgba(shown)[1, 1, 3] == 0.0, "seen through, to the white below"
    assert ax.get_xlim() == (0.5, 30.5), "three of thirty items"
    assert ax.transData.transform((1, 0))[1] > ax.transData.transform((1, 1))[1], "the first row is on top"
    assert plot_outcomes(["a", "b"], outcomes).images[0].get_clim() == (0.1, 0.6)


@pytest.mark.usefixtures("undrawn")
def test_of_many_items_some_are_drawn_at_equal_steps(tmp_path: Path) -> None:
    n = 2 * MOST_ITEMS
    two = sb.Instance(
        sb.Problem.bounded(sb.Graph.from_edges(2, []), float("inf"), items=sb.Items.listed(n)), labels=["old", "new"]
    )
    with sb.Study.create("many", two, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        labels, items = ["old", "new"] * n, [str(1 + each // 2) for each in range(2 * n)]
        study.add_known(labels, items, [float(int(item) % 2) for item in items], "before")
        assert study.ask() == [], "every pair is known"
        assert study.status().state == "decided" and study.status().results == 2 * n
        outcomes, table = study.report().outcomes, study.table()
    assert outcomes is not None and outcomes.n_items == MOST_ITEMS and table.n_items == n
    places = [table.items.index(item) for item in outcomes.items]
    assert places[0] == 0 and places[-1] == n - 1 and set(np.diff(places)) <= {2, 3}
    assert np.array_equal(outcomes.outcomes, table.outcomes[:, places])
