"""Which rows an index means, and in which pieces they are read from the disk."""

from __future__ import annotations

import operator
from typing import Any, Iterator, Tuple, Union

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Chosen = Union[int, range, Rows]

# Rows that lie nearer than this are read in one piece, with those between them.
GAP_BYTES = 1 << 16
# No piece, and no block of an iteration, is larger than this, unless one row is.
BLOCK_BYTES = 8_000_000


def choose(key: Any, rows: int, where: str) -> Chosen:
    """The row, the range of rows or the row numbers that `key` means: an integer, a slice, a
    boolean array [rows], or an array of integers, all negative ones counted from the end. Throws
    IndexError, with `where`, for what is none of these or not there."""
    if isinstance(key, slice):
        return range(*key.indices(rows))
    if not isinstance(key, (bool, np.bool_)):
        try:
            return _row(operator.index(key), rows, where)
        except TypeError:
            pass
    numbers = np.asarray(key)
    if numbers.ndim == 1:
        if numbers.dtype == np.bool_:
            if len(numbers) != rows:
                raise IndexError(f"{where}: {len(numbers)} booleans for {rows} rows")
            return np.flatnonzero(numbers)
        if numbers.size == 0:
            return np.empty(0, np.int64)
        if np.issubdtype(numbers.dtype, np.integer):
            chosen = numbers.astype(np.int64)
            bad = chosen[(chosen < -rows) | (chosen >= rows)]
            if len(bad):
                raise IndexError(f"{where}: no row {bad[0]}; it has {rows} rows")
            return np.where(chosen < 0, chosen + rows, chosen)
    raise IndexError(
        f"{where}: rows are chosen by an integer, a slice, or a list or array [n] of integers or "
        f"booleans, not by {key!r}"
    )


def _row(row: int, rows: int, where: str) -> int:
    if not -rows <= row < rows:
        raise IndexError(f"{where}: no row {row}; it has {rows} rows")
    return row + rows if row < 0 else row


def pieces(
    rows: Rows, row_bytes: int, gap_bytes: int = GAP_BYTES
) -> Iterator[Tuple[int, int, Rows]]:
    """For rows that increase strictly: the pieces [first, last) to read, and which rows of each
    piece are wanted. Few large readings cost less than many small ones, and no piece is so large
    that it matters."""
    gap = max(gap_bytes // max(row_bytes, 1), 1)
    most = max(BLOCK_BYTES // max(row_bytes, 1), 1)
    ends = np.append(np.flatnonzero(np.diff(rows) > gap) + 1, len(rows))
    begin = 0
    for end in ends.tolist():
        while begin < end:
            first = int(rows[begin])
            stop = min(int(np.searchsorted(rows, first + most)), end)
            yield first, int(rows[stop - 1]) + 1, rows[begin:stop] - first
            begin = stop


def blocks(rows: int, row_bytes: int) -> Iterator[Tuple[int, int]]:
    """All rows in blocks [first, last)."""
    most = max(BLOCK_BYTES // max(row_bytes, 1), 1)
    for first in range(0, rows, most):
        yield first, min(first + most, rows)
