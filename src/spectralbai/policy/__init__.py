"""Policies: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from spectralbai.policy.estimates import Differences, Estimates
from spectralbai.policy.policies import (
    GRUB,
    LUCB,
    POLICIES,
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
    "GRUB",
    "LUCB",
    "POLICIES",
    "Differences",
    "Estimates",
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
