"""Track-and-Stop without the graph: what SpectralTaS is at R = inf [GK16]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectralbai.policy.spectral_tas import SpectralTaS


@dataclass(frozen=True, eq=False)
class TrackAndStop(SpectralTaS):
    """Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence, with the default stopping
    rule."""

    ignores_graph: ClassVar[bool] = True
