"""The evaluations of a run over its steps."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
import numpy.typing as npt

from .errors import EvalError, PathLike, unknown_key
from .evaluation import Evaluation
from .locate import Found, find_all, latest
from .tables import Scalars, read_scalars


class Series(NamedTuple):
    """A number over training steps; two arrays [steps], to be plotted as they are."""

    steps: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class Evaluations:
    """The evaluations of a run by step, one a step: of several the latest that is complete. A file
    is opened when its evaluation is asked for, `evaluations[-1]`, and not before; a slice gives
    Evaluations. Those with a name, `names`, are others: `evaluations.named("test")`."""

    def __init__(self, path: Path, found: Sequence[Found], name: str = "") -> None:
        self._path = path
        self._all = list(found)
        self._name = name
        self._found = found = [one for one in self._all if one.name == name]
        by_step = [list(same) for _, same in itertools.groupby(found, key=lambda one: one.step)]
        with_outputs = [[one for one in same if one.outputs is not None] for same in by_step]
        self._entries: List[Found] = [latest(same) for same in with_outputs if same]

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """Training steps of the evaluations, int64 [len(self)], increasing."""
        return np.array([one.step for one in self._entries], dtype=np.int64)

    @property
    def scalars(self) -> Scalars:
        """What the evaluations and their callbacks found: a table of scalars over steps, read from
        the scalars.json of each; those whose outputs were cleaned up are in it as well."""
        return Scalars(str(self._path), self._scalars_by_step())

    @property
    def names(self) -> List[str]:
        """The names of evaluations that have one: of the config's `evaluations`, of `-n` or of
        `stepop predict`."""
        return sorted({one.name for one in self._all if one.name})

    def named(self, name: str) -> "Evaluations":
        """The evaluations of this name by step. Throws EvalError when there is none."""
        if name not in self.names:
            raise EvalError(
                f"{self._path}: no evaluation with the name {name!r}; "
                f"there are: {', '.join(self.names) or 'none'}"
            )
        return Evaluations(self._path, self._all, name)

    def series(
        self, key: str, reduce: Optional[Callable[[npt.NDArray[Any]], float]] = None
    ) -> Series:
        """A number over steps: of a label, `labels/loss`, its `mean` in each evaluation that is
        complete, or what `reduce` makes of the rows that count; of a scalar, as `scalars` has it.
        Throws UnknownKeyError when there is none of that name."""
        group, _, label = key.partition("/")
        points: Dict[int, float] = {}
        if group == "labels":
            for one, evaluation in self._opened():
                if evaluation.complete and label in evaluation.labels:
                    points[one.step] = (
                        evaluation.mean(label)
                        if reduce is None
                        else float(reduce(evaluation.labels[label][evaluation.counting(label)]))
                    )
        else:
            rows = self._scalars_by_step().items()
            points = {step: scalars[key] for step, scalars in rows if key in scalars}
        if not points:
            raise unknown_key(str(self._path), key, self._names())
        return Series(np.array(list(points), np.int64), np.array(list(points.values()), float))

    def at(self, step: int) -> Evaluation:
        """The evaluation of a step. Throws EvalError when there is none."""
        for one in self._entries:
            if one.step == step:
                return self._open(one)
        raise EvalError(
            f"{self._path}: no evaluation of step {step}; there are those of steps "
            f"{', '.join(map(str, self.steps.tolist()))}"
        )

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            chosen = {one.step for one in self._entries[key]}
            return Evaluations(
                self._path, [one for one in self._all if one.step in chosen], self._name
            )
        return self._open(self._entries[key])

    def __iter__(self) -> Iterator[Evaluation]:
        return map(self._open, self._entries)

    def __repr__(self) -> str:
        steps = ", ".join(map(str, self.steps.tolist()))
        return f"<Evaluations {self._path}: {len(self)}, of steps {steps}>"

    @staticmethod
    def _open(one: Found) -> Evaluation:
        path = one.outputs
        if path is None:
            raise EvalError(f"{one.folder}: its outputs vanished; was it cleaned up?")
        return Evaluation(path)

    def _opened(self) -> Iterator["tuple[Found, Evaluation]"]:
        for one in self._entries:
            with self._open(one) as evaluation:
                yield one, evaluation

    def _scalars_by_step(self) -> Dict[int, Dict[str, float]]:
        # Of the same step, the later start comes later.
        return {one.step: read_scalars(one.scalars) for one in self._found if one.scalars}

    def _names(self) -> List[str]:
        labels = {f"labels/{key}" for _, one in self._opened() for key in one.labels}
        return [*labels, *self.scalars]


def open_all(path: PathLike) -> Evaluations:
    """All evaluations of a run (logs/<time>_<name>), or of one start of it (eval/<time>_<name>).
    Throws EvalError when there is none."""
    return Evaluations(Path(path), find_all(path))
