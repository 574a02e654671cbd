"""What a file holds, by key: outputs as lazy arrays, labels and scalars as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, TypeVar

import numpy as np
import numpy.typing as npt

from .arrays import Array
from .errors import EvalError, unknown_key


def pandas_module() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas, which is not installed: pip install pandas"
        ) from error
    return pandas


Value = TypeVar("Value", covariant=True)


class _OfArrays(Mapping[str, Value]):
    """What is made of arrays, by their keys."""

    def __init__(self, where: str, arrays: Mapping[str, Array]) -> None:
        self._where, self._arrays = where, dict(arrays)

    def _array(self, key: str) -> Array:
        if key not in self._arrays:
            raise unknown_key(self._where, key, self._arrays)
        return self._arrays[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return _listing(self._where, {k: array.describe() for k, array in self._arrays.items()})


class Outputs(_OfArrays[Array]):
    """The outputs by their keys, `encoder/mean` for one in a group; nothing is read before an
    array is indexed."""

    def __getitem__(self, key: str) -> Array:
        return self._array(key)


class Labels(_OfArrays[npt.NDArray[Any]]):
    """The labels by their keys, each a whole array [rows, ...], read when it is first asked for and
    kept; so it is read-only, and a copy is for changes."""

    def __init__(self, where: str, arrays: Mapping[str, Array], index: Array) -> None:
        super().__init__(where, arrays)
        self._index = index
        self._values: Dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, key: str) -> npt.NDArray[Any]:
        array = self._array(key)
        if key not in self._values:
            values = np.asarray(array)
            values.flags.writeable = False
            self._values[key] = values
        return self._values[key]

    def arrays(self) -> Dict[str, Array]:
        """The same as lazy arrays."""
        return dict(self._arrays)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each example, whose index is the examples' index in
        the dataset. A label with several numbers an example is a column each: `center/0`,
        `center/1`. Throws ImportError without pandas."""
        pandas = pandas_module()
        columns: Dict[str, npt.NDArray[Any]] = {}
        for key, values in self.items():
            if values.ndim == 1:
                columns[key] = values
                continue
            for place in np.ndindex(*values.shape[1:]):
                columns["/".join([key, *map(str, place)])] = values[(slice(None), *place)]
        index = pandas.Index(np.asarray(self._index), name="index")
        return pandas.DataFrame(columns, index=index)


class Scalars(Mapping[str, npt.NDArray[np.float64]]):
    """A table of scalars over steps: `table[name]` is float64 [steps], NaN where a step has no
    such scalar. `table.steps` are the steps."""

    def __init__(self, where: str, rows: Mapping[int, Mapping[str, float]]) -> None:
        self._where = where
        self.steps: npt.NDArray[np.int64] = np.array(sorted(rows), dtype=np.int64)
        """Training steps, int64 [steps], increasing."""
        names = dict.fromkeys(name for step in self.steps.tolist() for name in rows[step])
        self._columns = {
            name: np.array([rows[step].get(name, np.nan) for step in self.steps.tolist()])
            for name in names
        }

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        if name not in self._columns:
            raise unknown_key(f"{self._where}: scalars", name, self._columns)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        described = {name: f"{len(self.steps)} steps" for name in self._columns}
        return _listing(f"{self._where}: scalars", described)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each step. Throws ImportError without pandas."""
        pandas = pandas_module()
        return pandas.DataFrame(self._columns, index=pandas.Index(self.steps, name="step"))


def nested(values: Mapping[str, Any]) -> Dict[str, Any]:
    """{"a/b": 1} -> {"a": {"b": 1}}"""
    tree: Dict[str, Any] = {}
    for key, value in values.items():
        *groups, name = key.split("/")
        inner = tree
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[name] = value
    return tree


def read_scalars(path: Path) -> Dict[str, float]:
    """The scalars of an evaluation that ended, from its scalars.json. Throws EvalError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        # What is not finite stands there as text: "NaN", "Infinity", "-Infinity".
        return {str(name): float(value) for name, value in found.items()}
    except (OSError, ValueError, TypeError) as error:
        raise EvalError(f"cannot read {path}: {error}") from error


def _listing(where: str, described: Mapping[str, str]) -> str:
    width = max(map(len, described), default=0)
    lines = [f"  {key:<{width}}  {text}" for key, text in described.items()]
    return "\n".join([where, *lines])
