"""Policies: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from spectralbai.policy.contract import Policy
from spectralbai.policy.grub import GRUB
from spectralbai.policy.lucb import LUCB
from spectralbai.policy.oracle_sampling import OracleSampling
from spectralbai.policy.spectral_tas import SpectralTaS
from spectralbai.policy.state import Estimates, State, Verdict
from spectralbai.policy.top_two import TopTwo
from spectralbai.policy.track_and_stop import TrackAndStop
from spectralbai.policy.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    "spectral-tas": SpectralTaS,
    "oracle": OracleSampling,
    "uniform": Uniform,
    "track-and-stop": TrackAndStop,
    "top-two": TopTwo,
    "lucb": LUCB,
    "grub": GRUB,
}
"""The policies by name: SpectralTaS, and what to compare it with."""

__all__ = [
    "GRUB",
    "LUCB",
    "POLICIES",
    "Estimates",
    "OracleSampling",
    "Policy",
    "SpectralTaS",
    "State",
    "TopTwo",
    "TrackAndStop",
    "Uniform",
    "Verdict",
]
