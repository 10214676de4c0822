"""Which arms of a catalogue the race pulls: it compares whole categories first, then single arms (theory 17.8)."""

from __future__ import annotations

import numpy as np

from spectralbai.allocation.closed_form import balance_leads
from spectralbai.arrays import Mask, Vector
from spectralbai.evidence.blocks import ranks_of
from spectralbai.evidence.outlook import CatalogueOutlook
from spectralbai.sampling.tracking import floor, project_on_floor

PANEL = 32
"""How many arms of a category are pulled to represent all of it. With more, the bound on how far one arm can be from
their average hardly improves."""
POSTPONED = 4.0
"""Rivals in the leader's category wait while beating them costs more than this times the cost of beating all others."""
CLOSE = 0.1
"""The leader's category is pulled in place of the leader if that loses less than this part of the narrowest lead."""
NARROWEST = 1e-7
"""Smallest lead, in standard deviations; smaller ones count as this."""


def aim(
    outlook: CatalogueOutlook, leader: int, needs: Vector, allowed: Mask, samples: int, floor_share: float
) -> tuple[Vector, float, int]:
    """Returns (omega, gain, units): the shares of the arms, the part of what is needed that one pull brings, and the
    number of units that the pulls were shared among.

    A category is one unit if beating all its arms together, through their common average, takes fewer pulls than
    beating them one by one; otherwise each of its racing arms is a unit. `allowed` marks the arms that may be pulled.
    """
    catalogue, mu, variances = outlook.catalogue, outlook.mu, outlook.variances
    of_arm, n = catalogue.of_arm, catalogue.n_categories
    home, racing = of_arm[leader], needs > 0
    least = NARROWEST * float(outlook.sigma.max())
    panel = _panel(outlook, allowed)
    members = np.maximum(catalogue.total(panel.astype(np.float64)), 1)
    level = catalogue.total(mu) / catalogue.sizes
    top = mu[leader] + outlook.problem.tolerance
    gap = np.maximum(top - mu, least)
    single = np.where(racing, needs * variances / gap**2, 0.0)
    one_by_one = catalogue.total(single)
    need, noise = np.zeros(n), np.zeros(n)
    np.maximum.at(need, of_arm[racing], needs[racing])
    np.maximum.at(noise, of_arm, variances)
    below = top - level - np.sqrt(outlook.room * (1 + 1 / members))
    # While the lead is uncertain by this standard deviation, it may also be this large.
    heavy = catalogue.total(outlook.weights)
    below = np.maximum(below, np.sqrt(1 / heavy + 1 / heavy[home]))
    together = need * noise / below**2
    grouped = (catalogue.sizes > 1) & (together < one_by_one)
    grouped[home] = False
    away = (need > 0) & (np.arange(n) != home)
    cost_away = float(np.where(grouped, together, one_by_one)[away].sum())
    postponed = 0 < cost_away < one_by_one[home] / POSTPONED

    groups = np.flatnonzero(away & grouped)
    alone = racing & ~grouped[of_arm]
    if postponed:
        alone &= of_arm != home
    arms = np.flatnonzero(alone)
    lead = np.concatenate([below[groups] ** 2 / need[groups], gap[arms] ** 2 / needs[arms]])
    if not lead.size:
        lone = np.zeros(mu.size)
        lone[leader] = 1.0
        return lone, 0.0, 1
    best, shares, gain = balance_leads(lead, np.concatenate([noise[groups], variances[arms]]), float(variances[leader]))
    units = project_on_floor(np.append(shares, best), floor_share * floor(lead.size + 1, samples))
    omega = np.zeros(mu.size)
    omega[arms] = units[groups.size : -1]
    per_panel = np.zeros(n)
    per_panel[groups] = units[: groups.size]
    narrowest = min(below[groups].min(initial=np.inf), gap[arms].min(initial=np.inf))
    if postponed and mu[leader] - level[home] < CLOSE * narrowest:
        per_panel[home] += units[-1]
    else:
        omega[leader] += units[-1]
    omega += np.where(panel, (per_panel / members)[of_arm], 0.0)
    return omega, gain, lead.size + 1


def _panel(outlook: CatalogueOutlook, allowed: Mask) -> Mask:
    """Returns the arms that represent their category: the first `PANEL` arms of each that may be pulled."""
    of_arm = outlook.catalogue.of_arm
    usable = np.flatnonzero(allowed)
    panel = np.zeros(of_arm.size, dtype=bool)
    panel[usable[ranks_of(of_arm[usable]) < PANEL]] = True
    return panel
