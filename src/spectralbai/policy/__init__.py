"""Policies: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from spectralbai.policy.estimates import Differences, Estimates
from spectralbai.policy.policies import (
    LUCB,
    POLICIES,
    GraphElimination,
    OracleSampling,
    Race,
    SpectralRace,
    SpectralTaS,
    TopTwo,
    TrackAndStop,
    Uniform,
)
from spectralbai.policy.policy import Policy
from spectralbai.policy.state import State
from spectralbai.verdict import Verdict

__all__ = [
    "LUCB",
    "POLICIES",
    "Differences",
    "Estimates",
    "GraphElimination",
    "OracleSampling",
    "Policy",
    "Race",
    "SpectralRace",
    "SpectralTaS",
    "State",
    "TopTwo",
    "TrackAndStop",
    "Uniform",
    "Verdict",
]
