"""The rows of an evaluation, each with its example of the dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Protocol

import numpy as np

from .errors import EvalError
from .rows import Rows

Example = Dict[str, Any]


class Pair(NamedTuple):
    """An example of a dataset and what the model made of it."""

    example: Any
    result: Example


class Evaluated(Protocol):
    """What is joined of an Evaluation."""

    @property
    def path(self) -> Path: ...
    @property
    def index(self) -> Rows: ...
    @property
    def split(self) -> Optional[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __iter__(self) -> Iterator[Example]: ...


class Joined:
    """The rows of an evaluation, each with its example of the dataset; see Evaluation.join. `count`
    and `source` are the numbers of examples of the dataset and of what it was chosen from."""

    def __init__(
        self,
        evaluation: Evaluated,
        dataset: Any,
        count: Optional[int],
        source: Optional[int],
    ) -> None:
        self._evaluation, self._dataset = evaluation, dataset
        self._examples = getattr(dataset, "iloc", dataset)
        self._is_source = False
        size = len(dataset) if hasattr(dataset, "__len__") else None
        if size is None or size == count:
            return
        self._is_source = size == source
        if self._is_source:
            return
        index = evaluation.index
        if count is not None and not isinstance(dataset, Mapping):
            whole = "" if source is None else f", chosen from {source}"
            raise EvalError(
                f"{evaluation.path}: the evaluated dataset has {count} examples{whole}; this one "
                f'has {size}; is it the split "{evaluation.split}"?'
            )
        if len(index) and index[-1] >= size:
            raise EvalError(
                f"{evaluation.path}: row {int(np.argmax(index >= size))} is example "
                f"{index[index >= size][0]} of its dataset, this one has {size}; is it the split "
                f'"{evaluation.split}"?'
            )

    def __len__(self) -> int:
        return len(self._evaluation)

    def __getitem__(self, key: Any) -> Any:
        """A Pair for an integer, a list of them for a slice or an array of rows."""
        found = self._evaluation[key]
        return [self._pair(one) for one in found] if isinstance(found, list) else self._pair(found)

    def __iter__(self) -> Iterator[Pair]:
        return map(self._pair, self._evaluation)

    def __repr__(self) -> str:
        return f"<{self._evaluation!r} joined with {type(self._dataset).__name__}>"

    def _pair(self, result: Example) -> Pair:
        place = result.get("source_index") if self._is_source else result["index"]
        return Pair(self._examples[place], result)
