"""Track-and-Stop without the graph: what SpectralTaS is at R = inf [GK16]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

from spectralbai.instance import Instance
from spectralbai.policy.spectral_tas import SpectralTaS


@dataclass(frozen=True, eq=False)
class TrackAndStop(SpectralTaS):
    """Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence, with the default stopping rule."""

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        return cls(replace(instance.problem, R=math.inf), **settings)
