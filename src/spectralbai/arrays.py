"""Types of arrays, and checks of those that users give: each returns a clean array or raises `InvalidInput`."""

from __future__ import annotations

import reprlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectralbai.errors import InvalidInput

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


def check_vector(name: str, value: ArrayLike, n_arms: int) -> Vector:
    """Returns `value` as a finite read-only vector with one entry per arm."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # ragged
        given = np.array(None)
    if given.dtype.kind not in "iuf":  # numpy would turn strings, booleans and None into numbers
        raise InvalidInput(f"`{name}` must hold one number per arm, got {reprlib.repr(value)}")
    vector = np.array(given, dtype=np.float64)
    if vector.shape != (n_arms,):
        raise InvalidInput(
            f"`{name}` must have shape (n_arms,) = ({n_arms},), got {vector.shape}; give one entry per arm"
        )
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise InvalidInput(f"`{name}` must be finite, got {vector[bad[0]]} at arm {bad[0]}")
    vector.setflags(write=False)
    return vector


def check_table(value: ArrayLike, n_arms: int) -> Matrix:
    """Returns outcomes as a finite read-only matrix with one row per arm and one column per item."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # ragged
        given = np.array(None)
    if given.dtype.kind not in "biuf" or given.ndim != 2 or given.shape[0] != n_arms or not given.size:
        raise InvalidInput(
            f"`table` must hold numbers, one row for each of the {n_arms} arms and one column per item, got shape "
            f"{given.shape}"
        )
    table = np.array(given, dtype=np.float64)
    if not np.isfinite(table).all():
        arm, item = np.argwhere(~np.isfinite(table))[0].tolist()
        raise InvalidInput(f"`table` must be complete and finite, got {table[arm, item]} at arm {arm} and item {item}")
    table.setflags(write=False)
    return table


def check_weights_of_arms(name: str, value: ArrayLike, n_arms: int) -> Vector:
    """Returns `value` (an allocation or counts) as non-negative numbers, one per arm, not all zero."""
    vector = check_vector(name, value, n_arms)
    bad = np.flatnonzero(vector < 0)
    if bad.size:
        raise InvalidInput(f"`{name}` must be non-negative, got {vector[bad[0]]} at arm {bad[0]}")
    if not vector.any():
        raise InvalidInput(f"`{name}` must have a positive entry, got zeros only")
    if vector.max() > np.finfo(np.float64).max / n_arms:
        raise InvalidInput(f"`{name}` must have a finite sum, got {vector.max():g} at arm {vector.argmax()}; lower it")
    return vector
