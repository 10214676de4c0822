"""The range of the score that a search is about: what is known of the scorers of scikit-learn, and what is given."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from spectralbai.checks import check_ends
from spectralbai.errors import InvalidInput

UNIT = (
    "accuracy balanced_accuracy top_k_accuracy average_precision "
    "f1 f1_macro f1_micro f1_samples f1_weighted jaccard jaccard_macro jaccard_micro jaccard_samples jaccard_weighted "
    "precision precision_macro precision_micro precision_samples precision_weighted "
    "recall recall_macro recall_micro recall_samples recall_weighted "
    "roc_auc roc_auc_ovo roc_auc_ovo_weighted roc_auc_ovr roc_auc_ovr_weighted "
    "completeness_score fowlkes_mallows_score homogeneity_score normalized_mutual_info_score rand_score v_measure_score"
)
"""The scorers of scikit-learn between 0 and 1. Those of regression have no lower end."""
RANGES = {**dict.fromkeys(UNIT.split(), (0.0, 1.0)), "matthews_corrcoef": (-1.0, 1.0)}


def range_of(scoring: Any, estimator: Any, given: Any) -> tuple[float, float]:
    """Returns the range of the scores that `scoring`, one scorer, gives an estimator: `given` by the user, or known."""
    if given is not None:
        try:
            low, high = given
        except (TypeError, ValueError):
            raise InvalidInput(f"`score_range` must be two numbers, such as (0, 1), got {given!r}") from None
        return check_ends(low, high, ("score_range[0]", "score_range[1]"))
    if scoring is None and is_classifier(estimator):
        return 0.0, 1.0  # the accuracy
    if isinstance(scoring, str) and scoring in RANGES:
        return RANGES[scoring]
    name = scoring if isinstance(scoring, str) else "this scorer" if scoring else f"{type(estimator).__name__}.score"
    raise InvalidInput(
        f"`score_range` must be given, since no range of {name} is known; give (low, high), where no score is above "
        "high, and those below low count as low: such as (0, 1) for r2"
    )
