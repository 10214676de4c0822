"""Values at the edges of what numbers, texts and lists can be: returned, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import spectralbai as sb
from verification.edges import campaign


def test_calls_with_values_at_the_edges_end_by_a_sentence_at_worst(tmp_path: Path) -> None:
    counts = campaign(300, f"sqlite:///{tmp_path / 'edges.db'}")
    assert counts.total() == 300 and counts["returned"] > 10


@pytest.mark.parametrize(
    "labels", [["\u00e9", "e\u0301"], ["a", "a\u200b"], ["a b", "a\u00a0b"], ["\uff11", "1"], ["\u202ea", "a"]]
)
def test_labels_that_look_the_same_are_refused(labels: list[str]) -> None:
    problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0)
    with pytest.raises(
        sb.InvalidInput, match=r"`labels\[1\]` must look different from that of arm 0, got '.*rename one"
    ):
        sb.Instance(problem, labels=labels)
    sb.Instance(problem, labels=["\u00e9", "e"])


def test_an_instance_that_no_memory_holds_is_refused_before_it_is_made() -> None:
    document = {"format": "spectralbai-instance/3", "n_arms": 10**9, "edges": [], "R": 1.0, "sigma": 1.0}
    for n_arms in (10**9, 10**400):
        with pytest.raises(sb.InvalidInput, match="arms would need about .* GB of memory"):
            sb.Instance.from_dict({**document, "n_arms": n_arms})
