"""Factors of sparse positive definite matrices, and the entries of their inverses that need no dense matrix.

A matrix A is written as P'A P = C D C', with C unit lower triangular. Where the entries of A off the diagonal are
negative or 0, those of C are, too, and all entries of A^-1 are sums of positive terms: only the pivots D suffer from
cancellation. `Pattern` holds what depends on the places of the entries alone, so that matrices of one graph share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit

AT_ONCE = 32
"""Right-hand sides that are solved for together: enough to read each entry of a factor rarely, and few enough for the
processor's cache."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a symmetric matrix and its factor have entries, after arms were put into an order that keeps them few."""

    order: Indices
    """order[k] is the row at place k."""
    place: Indices
    """The inverse of `order`."""
    upper: tuple[Indices, Indices]
    """Columns of the ordered matrix's upper triangle with its diagonal, as (indptr, indices)."""
    source: Indices
    """Which entry of the matrix each of these is, (n_entries,)."""
    parent: Indices
    """The elimination tree."""
    starts: Indices
    """Where each column of C begins, (n + 1,)."""

    @classmethod
    def of(cls, matrix: sparse.csc_array) -> Pattern:
        """Returns the pattern of a symmetric matrix that has entries on all of its diagonal."""
        n = matrix.shape[0]
        # The least degree ordering of SuperLU; its factor is not used, so any positive definite matrix will do.
        dominant = abs(matrix) + sparse.diags_array(abs(matrix).sum(axis=0) + 1.0)
        place = splu(
            dominant.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        ).perm_c.astype(np.intp)
        rows, columns = place[matrix.indices], place[np.repeat(np.arange(n), np.diff(matrix.indptr))]
        source = np.flatnonzero(rows <= columns)
        source = source[np.lexsort((rows[source], columns[source]))]
        indptr = np.searchsorted(columns[source], np.arange(n + 1)).astype(np.intp)
        indices = rows[source].astype(np.intp)
        parent, sizes = _tree(indptr, indices)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return cls(np.argsort(place), place, (indptr, indices), source, parent, starts)

    @property
    def n_entries(self) -> int:
        """Number of entries of C below its diagonal."""
        return int(self.starts[-1])

    def factor(self, values: Vector) -> SparseFactor:
        """Returns the factor of the matrix with these entries, in the order of the matrix that made the pattern.

        Raises `numpy.linalg.LinAlgError` if it is not positive definite in floating-point arithmetic."""
        rows, entries, pivots = _factored(*self.upper, values[self.source], self.parent, self.starts)
        if not (pivots > 0).all():
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return SparseFactor(self, rows, entries, pivots)


@dataclass(frozen=True, eq=False)
class SparseFactor:
    """C and D of one matrix; methods take and return vectors in the order of its rows."""

    pattern: Pattern
    rows: Indices
    """The row of each entry of C below the diagonal, column by column, ascending."""
    entries: Vector
    pivots: Vector
    """The diagonal of D."""

    def solve(self, b: Matrix) -> Matrix:
        """Returns A^-1 b for a vector or for the columns of a matrix."""
        wide = b[self.pattern.order].reshape(b.shape[0], -1)
        answer = np.empty((b.shape[0], wide.shape[1]))
        for first in range(0, wide.shape[1], AT_ONCE):
            part = np.ascontiguousarray(wide[:, first : first + AT_ONCE], dtype=np.float64)
            _solve(self.pattern.starts, self.rows, self.entries, self.pivots, part)
            answer[:, first : first + AT_ONCE] = part[self.pattern.place]
        return answer.reshape(b.shape)

    @cached_property
    def diagonal(self) -> Vector:
        """The diagonal of A^-1, by the recursion of Takahashi, Fagan and Chin."""
        diagonal = _selected(self.pattern.starts, self.rows, self.entries, self.pivots)
        return diagonal[self.pattern.place]

    def backward_error(self, lengths: Vector) -> float:
        """Returns an epsilon with |x' E x| <= epsilon x'A x for all x, where C D C' = A + E, if |x_a| is at most
        lengths_a sqrt(x'A x).

        |E| <= gamma |C| D |C|' entry by entry (Higham 2002, theorem 10.3), gamma about the number of terms that an
        entry is a sum of, times the rounding unit.
        """
        starts, scaled = self.pattern.starts, lengths[self.pattern.order]
        columns = np.repeat(np.arange(lengths.size), np.diff(starts))
        reach = scaled + np.bincount(columns, np.abs(self.entries) * scaled[self.rows], lengths.size)
        terms = 2 * (int(np.bincount(self.rows, minlength=1).max(initial=0)) + 4)
        return float(terms * np.finfo(float).eps * (self.pivots @ reach**2))


@njit
def _tree(indptr: Indices, indices: Indices) -> tuple[Indices, Indices]:
    """Returns the elimination tree, -1 at its roots, and the number of entries of each column of C (Liu 1990)."""
    n = indptr.size - 1
    parent, sizes, mark = np.full(n, -1, dtype=np.intp), np.zeros(n, dtype=np.intp), np.full(n, -1, dtype=np.intp)
    for k in range(n):
        mark[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            while mark[i] != k:
                if parent[i] == -1:
                    parent[i] = k
                sizes[i] += 1
                mark[i] = k
                i = parent[i]
    return parent, sizes


@njit
def _factored(
    indptr: Indices, indices: Indices, values: Vector, parent: Indices, starts: Indices
) -> tuple[Indices, Vector, Vector]:
    """Returns (rows, entries, pivots). Each row of C solves a triangular system (Davis 2006, section 4.8)."""
    n = parent.size
    rows, entries = np.empty(starts[n], dtype=np.intp), np.empty(starts[n])
    pivots, ends = np.zeros(n), starts[:n].copy()
    y, mark = np.zeros(n), np.full(n, -1, dtype=np.intp)
    path, stack = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    for k in range(n):
        top = n
        mark[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            y[i] = values[p]
            length = 0
            while mark[i] != k:
                path[length] = i
                length += 1
                mark[i] = k
                i = parent[i]
            while length > 0:
                length -= 1
                top -= 1
                stack[top] = path[length]
        pivot = y[k]
        y[k] = 0.0
        for s in range(top, n):
            c = stack[s]
            value = y[c]
            y[c] = 0.0
            for q in range(starts[c], ends[c]):
                y[rows[q]] -= entries[q] * value
            pivot -= value * value / pivots[c]
            rows[ends[c]] = k
            entries[ends[c]] = value / pivots[c]
            ends[c] += 1
        pivots[k] = pivot
        if not pivot > 0.0:
            pivots[k] = -1.0
            break
    return rows, entries, pivots


@njit
def _solve(starts: Indices, rows: Indices, entries: Vector, pivots: Vector, x: Matrix) -> None:
    """Replaces the columns of x, in the order of the factor, by A^-1 x."""
    n, m = x.shape
    for j in range(n):
        idle = True
        for k in range(m):
            if x[j, k] != 0.0:
                idle = False
        if idle:
            continue
        for q in range(starts[j], starts[j + 1]):
            i, entry = rows[q], entries[q]
            for k in range(m):
                x[i, k] -= entry * x[j, k]
    for j in range(n - 1, -1, -1):
        for k in range(m):
            x[j, k] /= pivots[j]
        for q in range(starts[j], starts[j + 1]):
            i, entry = rows[q], entries[q]
            for k in range(m):
                x[j, k] -= entry * x[i, k]


@njit
def _selected(starts: Indices, rows: Indices, entries: Vector, pivots: Vector) -> Vector:
    """Returns the diagonal of A^-1, in the order of the factor; entries of A^-1 are kept where C has entries."""
    n = pivots.size
    inverse, diagonal = np.zeros(entries.size), np.zeros(n)
    total, inside = np.zeros(n), np.full(n, -1, dtype=np.intp)
    weight = np.zeros(n)
    for j in range(n - 1, -1, -1):
        first, last = starts[j], starts[j + 1]
        for q in range(first, last):
            inside[rows[q]] = j
            weight[rows[q]] = entries[q]
            total[rows[q]] = 0.0
        for q in range(first, last):
            k = rows[q]
            own = weight[k]
            total[k] -= own * diagonal[k]
            sum_k = 0.0
            for p in range(starts[k], starts[k + 1]):
                i = rows[p]
                if inside[i] == j:
                    total[i] -= own * inverse[p]
                    sum_k -= weight[i] * inverse[p]
            total[k] += sum_k
        level = 1.0 / pivots[j]
        for q in range(first, last):
            inverse[q] = total[rows[q]]
            level -= entries[q] * inverse[q]
        diagonal[j] = level
    return diagonal
