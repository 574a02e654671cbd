"""One HDF5 file of evaluation outputs: opened, checked, its arrays listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import h5py

from .arrays import Array, RaggedArray, TextArray
from .checked import CheckedFile
from .errors import EvalError, reading

# The newest format that this reader knows; eval_out/README.md of stepop describes it byte by byte.
NEWEST_FORMAT = 1


class EvalFile:
    """Opened for reading only, whether or not an evaluation still writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.h5: Any = _open(path)
        try:
            with reading(path, "its attributes"):
                self.attributes: Dict[str, Any] = {
                    name: _plain(value) for name, value in self.h5.attrs.items()
                }
            version: int = self._required("format_version", int)
            if version > NEWEST_FORMAT:
                raise EvalError(
                    f"{path}: format {version} is newer than this package, which reads format "
                    f"{NEWEST_FORMAT}; install the version of stepop that wrote it"
                )
            self.rows: int = self._required("rows", int)
            self.complete: bool = self._required("complete", bool)
            with reading(path, "its list of arrays"):
                checked = CheckedFile(path, self.h5)
                if not checked.has("index"):
                    raise EvalError(f'{path}: not a file of evaluation outputs: it has no "index"')
                index = checked.open(self.h5, "index", "index")
                self.index = Array(path, "index", index, self.rows)
                self.dataset_size = _count(index)
                self.source_index: Optional[Array] = None
                self.source_size: Optional[int] = None
                if checked.has("source_index"):
                    source = checked.open(self.h5, "source_index", "source_index")
                    self.source_index = Array(path, "source_index", source, self.rows)
                    self.source_size = _count(source)
                self.outputs = self._arrays(checked, "outputs")
                self.labels = self._arrays(checked, "labels")
                self.weights = self._arrays(checked, "weights")
        except BaseException:
            self.h5.close()
            raise

    def _required(self, name: str, kind: type) -> Any:
        value: Any = self.attributes.get(name)
        is_right = type(value) is kind
        if not is_right or value < 0:
            raise EvalError(
                f'{self.path}: not a file of evaluation outputs: it has no attribute "{name}"'
            )
        return value

    def _arrays(self, checked: CheckedFile, group: str) -> Mapping[str, Array]:
        found: Dict[str, Array] = {}
        if checked.has(group):
            self._list(checked, checked.open(self.h5, group, group), group, found)
        return {key[len(group) + 1 :]: array for key, array in found.items()}

    def _list(self, checked: CheckedFile, item: Any, key: str, found: Dict[str, Array]) -> None:
        if isinstance(item, h5py.Dataset):
            is_text = h5py.check_string_dtype(item.dtype) is not None
            found[key] = (TextArray if is_text else Array)(self.path, key, item, self.rows)
        elif isinstance(item, h5py.Group) and "ragged" in item.attrs:
            values = checked.open(item, "values", f"{key}/values")
            offsets = checked.open(item, "offsets", f"{key}/offsets")
            found[key] = RaggedArray(self.path, key, values, offsets, self.rows)
        elif isinstance(item, h5py.Group):
            for name, below in checked.below(item, key):
                self._list(checked, below, name, found)


def _open(path: Path) -> Any:
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as error:
        raise EvalError(f"cannot read {path}: {error.strerror}") from error
    if size == 0:
        raise EvalError(f"cannot read {path}: it is empty")
    # A lock on a .part would be in the way of the evaluation that resumes it. A file that is
    # whole is opened as h5py does by default: HDF5 opens no file twice with different locking.
    by_default = path.suffix != ".part"
    try:
        return _open_with(path, by_default)
    except (OSError, RuntimeError, ValueError) as error:
        try:
            return _open_with(path, not by_default)
        except (OSError, RuntimeError, ValueError):
            raise EvalError(f"cannot read {path}: {_reason(str(error))}") from error


def _open_with(path: Path, default_locking: bool) -> Any:
    return h5py.File(path, "r", locking=None if default_locking else False)


def _reason(text: str) -> str:
    if "file signature not found" in text:
        return "it is not an HDF5 file"
    if "truncated file" in text:
        return "the file is cut short; its end is lost, and HDF5 opens no part of it"
    return text


def _count(index: Any) -> Optional[int]:
    """How many examples the array's numbers count; None in files of stepop 0.1.0."""
    found: Any = _plain(index.attrs.get("count"))
    return found if type(found) is int else None


def _plain(value: Any) -> Any:
    """numpy's scalars as Python's."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if getattr(value, "ndim", None) == 0 else value
