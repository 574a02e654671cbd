"""Arrays of a file that are read when they are indexed, and no further than that."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

import numpy as np
import numpy.typing as npt

from .errors import EvalError, reading
from .rows import GAP_BYTES, Rows, blocks, choose, pieces

# Of so many texts the mean length is taken for that of all.
_SAMPLED_TEXTS = 64


class Array:
    """An array [rows, ...] in a file. Indexing reads what is asked for: an integer gives one row,
    a slice, a boolean array or an array of integers gives that many; further dimensions follow
    after a comma, as in numpy. `numpy.asarray` reads all of it."""

    kind = "numbers"

    def __init__(self, path: Path, key: str, dataset: Any, rows: int) -> None:
        self._path, self._key, self._dataset, self._rows = path, key, dataset, rows
        if len(dataset.shape) == 0:
            raise EvalError(f"{path}: {key} is a single value, not an array of rows")
        self._require(int(dataset.shape[0]), rows, key)

    @property
    def key(self) -> str:
        """`outputs/logits`"""
        return self._key

    @property
    def shape(self) -> Tuple[int, ...]:
        """Begins with the number of rows, which are those that were written."""
        return (self._rows, *(int(length) for length in self._dataset.shape[1:]))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers; `object` for text."""
        dtype: np.dtype[Any] = self._dataset.dtype
        return dtype

    @property
    def row_bytes(self) -> int:
        """How many bytes a row has; of text and ragged arrays about the mean."""
        return self.dtype.itemsize * math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, key: Any) -> Any:
        rows, inner = self._split(key)
        chosen = choose(rows, self._rows, self._where)
        if isinstance(chosen, int):
            row = self._read(chosen, chosen + 1, inner)[0]
            return row if self._is_simple(inner) else row[inner]
        if isinstance(chosen, range) and chosen.step == 1:
            values = self._read(chosen.start, max(chosen.start, chosen.stop), inner)
        else:
            values = self._take(np.asarray(chosen, dtype=np.int64), inner)
        if self._is_simple(inner):
            return values
        # As numpy has it: arrays choose together, each element of one with that of the other.
        first = slice(None) if isinstance(chosen, range) else np.arange(len(values))
        return values[(first, *inner)]

    def __iter__(self) -> Iterator[Any]:
        for first, last in blocks(self._rows, self.row_bytes):
            yield from own_rows(self.read(first, last))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"{self._where} is read from the disk, which makes a copy")
        values = self.read(0, self._rows)
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        return f"<{self._key}: {self.describe()}>"

    def describe(self) -> str:
        """`float32 [355, 10]`"""
        return f"{self.dtype} {list(self.shape)}"

    def read(self, first: int, last: int) -> npt.NDArray[Any]:
        """Rows `first` to `last`, which must be there."""
        return self._read(first, last, ())

    @property
    def _gap_bytes(self) -> int:
        """Rows that lie nearer than this are read in one piece, with those between them."""
        return GAP_BYTES

    @property
    def _where(self) -> str:
        return f"{self._path}: {self._key}"

    def _require(self, found: int, needed: int, what: str) -> None:
        if found < needed:
            raise EvalError(
                f"{self._path}: {what} has {found} rows, the file says that {needed} were written"
            )

    def _check_open(self) -> None:
        if not self._dataset:
            raise EvalError(f"{self._where}: the file was closed; open it again")

    def _split(self, key: Any) -> Tuple[Any, Tuple[Any, ...]]:
        """An index in that of the rows and those of the other dimensions."""
        parts = key if isinstance(key, tuple) else (key,)
        dots = [i for i, part in enumerate(parts) if part is Ellipsis]
        if len(dots) > 1 or len(parts) - len(dots) > self.ndim:
            raise IndexError(f"{self._where}: too many indices for {self.describe()}")
        if dots:
            fill = (slice(None),) * (self.ndim + 1 - len(parts))
            parts = parts[: dots[0]] + fill + parts[dots[0] + 1 :]
        return (parts[0], tuple(parts[1:])) if parts else (slice(None), ())

    @staticmethod
    def _is_simple(inner: Tuple[Any, ...]) -> bool:
        """Whether HDF5 can choose these while it reads; else numpy does so afterwards."""
        return all(
            (isinstance(part, slice) and (part.step is None or part.step > 0))
            or (isinstance(part, (int, np.integer)) and not isinstance(part, bool))
            for part in inner
        )

    def _read(self, first: int, last: int, inner: Tuple[Any, ...]) -> npt.NDArray[Any]:
        self._check_open()
        simple = inner if self._is_simple(inner) else ()
        with reading(self._path, self._key):
            values: npt.NDArray[Any] = self._dataset[(slice(first, last), *simple)]
            return values

    def _take(self, rows: Rows, inner: Tuple[Any, ...]) -> npt.NDArray[Any]:
        """Any rows in any order, each read once."""
        if len(rows) == 0:
            return self._read(0, 0, inner)
        unique, back = np.unique(rows, return_inverse=True)
        parts = [
            self._read(first, last, inner)[wanted]
            for first, last, wanted in pieces(unique, self.row_bytes, self._gap_bytes)
        ]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return values if np.array_equal(unique, rows) else values[back]


class TextArray(Array):
    """Texts [rows]: an integer gives a str, anything else an array of objects [n] that are str."""

    kind = "text"
    _mean_bytes: Optional[int] = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(object)

    @property
    def row_bytes(self) -> int:
        if self._mean_bytes is None:
            step = max(self._rows // _SAMPLED_TEXTS, 1)
            texts = [self._read(row, row + 1, ())[0] for row in range(0, self._rows, step)]
            # A str has 49 bytes and its characters.
            self._mean_bytes = 49 + sum(map(len, texts)) // max(len(texts), 1)
        return self._mean_bytes

    @property
    def _gap_bytes(self) -> int:
        return 0  # a text between two costs as much as a wanted one

    def describe(self) -> str:
        return f"text {list(self.shape)}"

    def _read(self, first: int, last: int, inner: Tuple[Any, ...]) -> npt.NDArray[Any]:
        self._check_open()
        with reading(self._path, self._key):
            texts: npt.NDArray[Any] = self._dataset.asstr()[first:last]
            return texts


class RaggedArray(Array):
    """Arrays that differ in their first dimension, one a row: an integer gives that row's array,
    anything else an array of objects [n] that are arrays."""

    kind = "ragged"
    _mean_bytes: Optional[int] = None

    def __init__(self, path: Path, key: str, values: Any, offsets: Any, rows: int) -> None:
        self._values, self._offsets = values, offsets
        super().__init__(path, key, values, 0)
        self._rows = rows
        self._require(int(offsets.shape[0]) - 1, rows, f"{key}/offsets")

    @property
    def shape(self) -> Tuple[int, ...]:
        """(rows,): each row has a shape of its own."""
        return (self._rows,)

    @property
    def row_bytes(self) -> int:
        if self._mean_bytes is None:
            self._check_open()
            with reading(self._path, f"{self._key}/offsets"):
                total = int(self._offsets[self._rows]) if self._rows else 0
            each = self.dtype.itemsize * math.prod(map(int, self._values.shape[1:]))
            self._mean_bytes = max(total, 0) * each // max(self._rows, 1)
        return self._mean_bytes

    @property
    def lengths(self) -> Rows:
        """The first dimension of each row, int64 [rows]."""
        self._check_open()
        with reading(self._path, f"{self._key}/offsets"):
            lengths: Rows = np.diff(self._offsets[: self._rows + 1])
            return lengths

    def describe(self) -> str:
        shape = ", ".join([str(self._rows), "*", *map(str, self._values.shape[1:])])
        return f"ragged {self.dtype} [{shape}]"

    def _read(self, first: int, last: int, inner: Tuple[Any, ...]) -> npt.NDArray[Any]:
        self._check_open()
        rows = np.empty(last - first, dtype=object)
        with reading(self._path, self._key):
            offsets = self._offsets[first : last + 1]
            is_whole = 0 <= offsets[0] and offsets[-1] <= self._values.shape[0]
            if not is_whole or np.any(np.diff(offsets) < 0):
                raise EvalError(
                    f"{self._where}: the file is damaged: its offsets decrease, or point outside "
                    f"of values"
                )
            values = self._values[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        for i in range(len(rows)):
            rows[i] = values[offsets[i] : offsets[i + 1]]
        return rows


def own_rows(values: npt.NDArray[Any]) -> Iterator[Any]:
    """The rows of a block that was read, none of which holds on to the block."""
    for row in values:
        yield row.copy() if isinstance(row, np.ndarray) else row
