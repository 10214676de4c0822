"""Noise in instance files: the key `sigma`, or `low` and `high`, which may come with `binary`, or a registered kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spectralbai.checks import check_ends, check_kind, check_number, check_numbers
from spectralbai.errors import InvalidInput
from spectralbai.noise.binary import Binary
from spectralbai.noise.bounded import Bounded
from spectralbai.noise.contract import Noise
from spectralbai.noise.sub_gaussian import SubGaussian

KEYS = ("sigma", "low", "high", "binary")
Reader = Callable[[Mapping[str, Any], int], Noise]
"""Takes the object in a file and the number of arms, and returns the noise."""
READERS: dict[str, Reader] = {}
"""The function that reads each kind of noise, as given to `register_noise`."""


def register_noise(kind: str, read: Reader) -> None:
    """Adds a kind of noise that instance files can hold.

    Its `as_dict` returns {"noise": {"kind": kind, ...}}, and `read` takes that inner object and the number of arms.
    """
    if READERS.setdefault(kind, read) is not read:
        raise InvalidInput(f"`kind` must be new, got {kind!r}, which is registered already; choose another word")


def noise_from_dict(d: Mapping[str, Any], n_arms: int) -> Noise:
    """Returns the noise of an instance file, Gaussian with sigma = 1 without any of the keys; others are ignored."""
    if "noise" in d:
        for key in KEYS:
            if key in d:
                raise InvalidInput(f'$ has both "noise" and "{key}"; remove one of them')
        return check_kind("$.noise", d["noise"], READERS)(d["noise"], n_arms)
    for key in ("low", "high", "binary"):
        if key in d and "sigma" in d:
            raise InvalidInput(f'$ has both "sigma" and "{key}"; give sigma, or low and high')
    for key, other in (("low", "high"), ("high", "low"), ("binary", "low")):
        if key in d and other not in d:
            together = "binary goes with low and high" if key == "binary" else "low and high go together"
            raise InvalidInput(f'$ lacks the key "{other}"; {together}')
    if "low" in d:
        binary = d.get("binary", False)
        if not isinstance(binary, bool):
            raise InvalidInput(f"$.binary must be true or false, got {binary!r}")
        return (Binary if binary else Bounded)(*check_ends(d["low"], d["high"], ("$.low", "$.high")))
    sigma, rule = d.get("sigma", 1.0), "a finite positive number"
    if isinstance(sigma, list | tuple):
        return SubGaussian.of(check_numbers("$.sigma", sigma, n_arms, rule, low=0.0), n_arms)
    return SubGaussian.of(check_number("$.sigma", sigma, f"{rule} or a list of them", low=0.0, strict=True), n_arms)
