"""What a file from anywhere may hold: nothing outside of it is opened, and what its arrays claim
to hold is compared with what it stores. eval_out/hdf5/hdf5_file does the same in C++."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Iterator, Set, Tuple

import h5py

from .errors import EvalError

# Groups lie at most this deep in one another.
MOST_GROUPS = 64
# Arrays that claim more than this in all, and more than a hundred times what the file stores of
# them, are refused.
UNPACK_LIMIT = 2e9
MOST_UNPACKED = 100
LIMIT_NAME = "STEPOP_UNPACK_LIMIT"


class CheckedFile:
    """Opens the objects of an open file, each after a look at what leads to it."""

    def __init__(self, path: Path, h5: Any) -> None:
        self._path, self._h5 = path, h5
        self._bytes = float(h5.id.get_filesize())
        self._claimed = self._stored = 0.0
        self._groups: Set[Tuple[int, int]] = set()

    def has(self, name: str) -> bool:
        """Whether the file has a link of that name, wherever it leads."""
        # Group.get and `in` would follow it.
        return bool(self._h5.id.links.exists(name.encode()))

    def open(self, parent: Any, name: str, key: str) -> Any:
        """The object that a link of `parent` leads to; `key` is its name in messages."""
        link = parent.id.links.get_info(name.encode("utf-8", "surrogateescape")).type
        if link != h5py.h5l.TYPE_HARD:
            to = "another name" if link == h5py.h5l.TYPE_SOFT else "another file"
            raise EvalError(
                f"{self._path}: {key} is a link to {to}, which is not followed; copy what it leads "
                f"to into its place, with h5py"
            )
        found = parent[name]
        if isinstance(found, h5py.Dataset):
            self._check_storage(found, key)
            self._check_size(found, key)
        elif isinstance(found, h5py.Group):
            if key.count("/") >= MOST_GROUPS:
                raise EvalError(
                    f"{self._path}: {key[:60]}...: groups lie more than {MOST_GROUPS} deep in one "
                    f"another; copy the arrays out of it, with h5py"
                )
            info = h5py.h5o.get_info(found.id)
            if (info.fileno, info.addr) in self._groups:
                raise EvalError(
                    f"{self._path}: {key} is a group that is there under another name already; in "
                    f"a file of outputs each has one"
                )
            self._groups.add((info.fileno, info.addr))
        return found

    def below(self, group: Any, key: str) -> Iterator[Tuple[str, Any]]:
        """The objects of a group with their keys."""
        for name in group:
            if isinstance(name, bytes):  # h5py could not decode it
                raise EvalError(
                    f"{self._path}: {key} has a name that is not UTF-8 text, {name!r}: the file is "
                    f"damaged, or another program wrote it"
                )
            yield f"{key}/{name}", self.open(group, name, f"{key}/{name}")

    def _check_storage(self, dataset: Any, key: str) -> None:
        # Before anything else: a virtual dataset opens its files to find its shape.
        how = ""
        if dataset.is_virtual:
            how = "is a virtual dataset, put together from other files"
        elif dataset.external:
            how = "has its numbers in another file"
        if how:
            raise EvalError(
                f"{self._path}: {key} {how}: no file is read that another one names; copy the "
                f"array into the file itself, with h5py"
            )

    def _check_size(self, dataset: Any, key: str) -> None:
        # A chunk is unpacked whole, however few of its rows there are.
        elements = max(_product(dataset.shape or ()), _product(dataset.chunks or (0,)))
        self._claimed += elements * dataset.id.get_type().get_size()
        self._stored = min(self._stored + dataset.id.get_storage_size(), self._bytes)
        if self._claimed <= _limit() or self._claimed <= MOST_UNPACKED * self._stored:
            return
        raise EvalError(
            f"{self._path}: {key}: with it the arrays claim to hold {self._claimed:.3g} bytes, of "
            f"which the file stores {self._stored:.3g}: it is damaged, or made to fill the memory. "
            f"If you know where it is from, {LIMIT_NAME}={2 * self._claimed:.0e} in the "
            f"environment takes it"
        )


def _product(lengths: Tuple[int, ...]) -> float:
    return float(math.prod(lengths))


def _limit() -> float:
    given = os.environ.get(LIMIT_NAME, "")
    try:
        return float(given) if given else UNPACK_LIMIT
    except ValueError:
        raise EvalError(
            f'{LIMIT_NAME}: expected a number of bytes such as 20e9, found "{given}"'
        ) from None
