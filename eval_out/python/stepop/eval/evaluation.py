"""One evaluation, as people work with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

import numpy as np
import numpy.typing as npt

from .config import read_config
from .arrays import Array, own_rows
from .errors import EvalError, PathLike
from .file import EvalFile
from .joined import Example, Joined
from .locate import SCALARS, find
from .rows import Rows, blocks, choose
from .tables import Labels, Outputs, nested, read_scalars


class Evaluation:
    """The outputs of one evaluation of a model over a split. Rows are in the order of the dataset;
    `index` says which example each is. Nothing is held in memory but labels that were asked for.

    `evaluation[row]` is an example as a dict: {"index": 7, "outputs": {...}, "labels": {...}},
    keys with a slash as dicts within. A slice or an array of rows gives a list of them. It can be
    iterated, pickled, closed, and be a context manager.
    """

    def __init__(self, path: PathLike) -> None:
        """Opens a file; `stepop.eval.open` finds that of a run. Throws EvalError for one that is
        missing, no HDF5, cut short, no evaluation outputs, or of a newer format."""
        self._file = EvalFile(Path(path))
        self.outputs = Outputs(f"{path}: outputs", self._file.outputs)
        self.labels = Labels(f"{path}: labels", self._file.labels, self._file.index)
        self.weights = Labels(f"{path}: weights", self._file.weights, self._file.index)
        """How much each row of a label counts in its mean, such as the number of its tokens, by the
        label's key; a label of which each row counts once has none."""
        self._config: Optional[Dict[str, Any]] = None

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def rows(self) -> int:
        """How many examples were written when the file was opened; all of them when `complete`."""
        return self._file.rows

    @property
    def complete(self) -> bool:
        """Whether the evaluation came to its end. It did not when it was killed or still runs."""
        return self._file.complete

    @property
    def index(self) -> Rows:
        """Each row's index in the dataset, int64 [rows], increasing."""
        return np.asarray(self._file.index)

    @property
    def source_index(self) -> Rows:
        """Each row's place in the file or dataset from which folds, subsets or dropped rows chose
        the examples, from 0: `table.iloc[e.source_index]`. The same as `index` where all of it was
        taken."""
        source = self._file.source_index
        return self.index if source is None else np.asarray(source)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """All that the file says about itself, as bool, int, float and str."""
        return dict(self._file.attributes)

    @property
    def config(self) -> Dict[str, Any]:
        """The resolved config of the run: dicts, lists and plain values. Throws EvalError when the
        file has none."""
        if self._config is None:
            self._config = read_config(self.path, self._file.attributes)
        return self._config

    def class_names(self, key: str = "class") -> List[str]:
        """The names of the classes under a key of the examples, in the order of their numbers; empty
        when the run has none."""
        found: Any = self.config.get("class_names")
        for part in key.split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        return list(found) if isinstance(found, list) else []

    @property
    def global_step(self) -> Optional[int]:
        """The training steps of the evaluated weights; None when the file does not say."""
        return self._file.attributes.get("global_step")

    @property
    def split(self) -> Optional[str]:
        """`validation`"""
        return self._file.attributes.get("split")

    @property
    def iterator(self) -> Optional[str]:
        """The registered name of the iterator."""
        return self._file.attributes.get("iterator")

    @property
    def model(self) -> Optional[str]:
        """The registered names of the networks."""
        return self._file.attributes.get("model")

    @property
    def git(self) -> Optional[str]:
        """The state of the user's code: `main e6339a6, clean`."""
        return self._file.attributes.get("git")

    @property
    def scalars(self) -> Dict[str, float]:
        """What the evaluation and its callbacks found, by full name, from the scalars.json beside
        the file: `validation/eval_op/accuracy/accuracy`. Empty when there is none, as in an
        evaluation that did not end."""
        path = self.path.with_name(SCALARS)
        return read_scalars(path) if self.complete and path.is_file() else {}

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, key: Any) -> Any:
        chosen = choose(key, self.rows, str(self.path))
        if isinstance(chosen, int):
            return self._example(self._places(chosen), self._columns(chosen))
        numbers = np.asarray(chosen, dtype=np.int64)
        return self._examples(self._columns(numbers), self._places(numbers))

    def __iter__(self) -> Iterator[Example]:
        arrays = [*self._file.outputs.values(), *self._file.labels.values()]
        for first, last in blocks(self.rows, sum(array.row_bytes for array in arrays) + 8):
            yield from self[first:last]

    def counting(self, label: str) -> npt.NDArray[np.bool_]:
        """Which rows count in the mean of a label, bool [rows]: those whose weight is not 0. The
        loss of a text without a token to learn has the weight 0, and no meaning."""
        if label not in self.weights:
            return np.ones(self.rows, bool)
        counts: npt.NDArray[np.bool_] = (self.weights[label] != 0).reshape(self.rows, -1).any(1)
        return counts

    def mean(self, label: str) -> float:
        """The mean of a label over the rows, each by its weight; NaN when nothing counts. Throws
        EvalError for texts and for rows of different lengths."""
        array = self.labels.arrays().get(label)
        if array is not None and array.kind != "numbers":
            raise EvalError(f"{self.path}: labels/{label} is {array.describe()}, which has no mean")
        values = self.labels[label].astype(np.float64)
        if label in self.weights:
            weights = np.broadcast_to(self.weights[label], values.shape).astype(np.float64)
            values, weights = values[weights != 0], weights[weights != 0]
            return float(np.average(values, weights=weights)) if weights.size else float("nan")
        return float(values.mean()) if values.size else float("nan")

    def worst(self, label: str, n: int, largest: bool = True) -> Rows:
        """The rows of the `n` largest values of a label, the worst first, int64 [n]; fewer when
        there are fewer. NaN is worse than all numbers; among equals the earlier row comes first.
        largest=False takes the smallest values, for a label such as an accuracy. Rows that do not
        count (see `counting`) are left out.

        Row numbers go everywhere: `e[rows]`, `e.outputs["logits"][rows]`, `e.index[rows]`,
        `e.join(dataset)[rows]`.
        """
        return self._ranked(label, largest, nan_first=True)[: _count(n)]

    def best(self, label: str, n: int, largest: bool = False) -> Rows:
        """The rows of the `n` smallest values of a label, or with largest=True of the largest, the
        best first; otherwise as `worst`. NaN comes after all numbers."""
        return self._ranked(label, largest, nan_first=False)[: _count(n)]

    def join(self, dataset: Any) -> Joined:
        """Pairs each row with its example. `dataset` is the one that was evaluated, as any sequence,
        torch's map-style datasets and pandas' tables included; or all of the file or dataset from
        which its folds or subsets were chosen (`source_index`). Nothing is read before a pair is
        asked for. Throws EvalError for a dataset of another length."""
        return Joined(self, dataset, self._file.dataset_size, self._file.source_size)

    def close(self) -> None:
        """Closes the file; its arrays cannot be read any more, labels that were read can."""
        self._file.h5.close()

    def __enter__(self) -> "Evaluation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:  # a process of a data loader opens the file for itself
        return Evaluation, (self.path,)

    def __repr__(self) -> str:
        state = "" if self.complete else ", not complete"
        step = "" if self.global_step is None else f", step {self.global_step}"
        return f"<Evaluation {self.path}: {self.rows} rows{state}{step}>"

    def _columns(self, rows: Any) -> Dict[str, Dict[str, Any]]:
        """What all arrays hold of a row or of rows."""
        return {
            group: {key: array[rows] for key, array in arrays.items()}
            for group, arrays in (("outputs", self._file.outputs), ("labels", self._file.labels))
        }

    def _places(self, rows: Any) -> Dict[str, Any]:
        """The places of a row or of rows."""
        places = {"index": self._file.index[rows]}
        if self._file.source_index is not None:
            places["source_index"] = self._file.source_index[rows]
        return places

    @staticmethod
    def _example(places: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> Example:
        numbers = {key: int(place) for key, place in places.items()}
        return {**numbers, **{group: nested(found) for group, found in values.items()}}

    def _examples(
        self, columns: Mapping[str, Mapping[str, Any]], places: Mapping[str, Any]
    ) -> List[Example]:
        count = len(places["index"])
        rows: Dict[str, List[Dict[str, Any]]] = {}
        for group, arrays in columns.items():
            rows[group] = [{} for _ in range(count)]
            for key, values in arrays.items():
                for row, value in zip(rows[group], own_rows(values)):
                    row[key] = value
        return [
            self._example(
                {key: numbers[i] for key, numbers in places.items()},
                {group: rows[group][i] for group in rows},
            )
            for i in range(count)
        ]

    def _ranked(self, label: str, largest: bool, nan_first: bool) -> Rows:
        values = self.labels[label]
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            array: Array = self._file.labels[label]
            raise EvalError(
                f"{self.path}: labels/{label} is {array.describe()}; only one number an example "
                f"can be the worst"
            )
        rows = np.arange(len(values))
        is_nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
        counts = self.counting(label)
        nans, numbers = rows[is_nan & counts], rows[~is_nan & counts]
        if largest:  # sorted from behind, so that equals stay in their order
            numbers = numbers[::-1]
        order = numbers[np.argsort(values[numbers], kind="stable")]
        if largest:
            order = order[::-1]
        parts = [nans, order] if nan_first else [order, nans]
        ranked: npt.NDArray[np.int64] = np.concatenate(parts).astype(np.int64)
        return ranked


def _count(n: int) -> int:
    if n < 0:
        raise ValueError(f"cannot take {n} rows")
    return n


def open(path: PathLike, step: Optional[int] = None) -> Evaluation:
    """The evaluation in a file (outputs.h5, or the outputs.h5.part of one that still runs or
    was killed), in an evaluation's folder (eval/<time>_<name>/<step>), or the latest in a run's
    (logs/<time>_<name>, eval/<time>_<name>): that of the last start and its last step, complete if
    there is one that is. With `step`, the latest of that step. Throws EvalError."""
    return Evaluation(find(path, step))
