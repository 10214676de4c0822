"""Policies: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from spectralbai.policy.spectral_tas import SpectralTaS
from spectralbai.policy.state import State, Verdict

__all__ = ["SpectralTaS", "State", "Verdict"]
