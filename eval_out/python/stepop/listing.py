"""The runs in a folder."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Optional, Sequence, Union

from .command import call
from .errors import PathLike, pandas_module

if TYPE_CHECKING:
    import pandas


_COLUMNS = ("run", "state", "step", "metric", "last", "best", "folder")  # where there is no run


def runs(
    logs: PathLike = "logs",
    *,
    best: Optional[str] = None,
    where: Union[str, Sequence[str]] = (),
    show: Sequence[str] = (),
    name: Optional[str] = None,
    state: Optional[str] = None,
    debug: bool = False,
) -> "pandas.DataFrame":
    """The runs in a folder as `stepop runs` has them: a row for each, whose index is its name.

    The columns are state, step, epoch, metric, its last and best value, age in seconds, and
    `folder`, which `stepop.Run` opens. `best="accuracy"` chooses the metric and sorts by it;
    `where="optimizer/lr<1e-2"` (or several) and `state` select; `show=["optimizer/lr"]` adds
    columns for keys of the config. Throws StepopError.

    >>> stepop.runs("logs")[["state", "step"]]
                                state  step
    run
    2026-11-21T10-00-00_digits  ended    46
    """
    module = pandas_module("runs()")
    words = ["runs", os.fspath(logs), "--json"]
    for flag, value in (("--best", best), ("--name", name), ("--state", state)):
        words += [] if value is None else [flag, value]
    for condition in [where] if isinstance(where, str) else where:
        words += ["--where", condition]
    words += ["--show", *show] if show else []
    words += ["-d"] if debug else []
    found = json.loads(call(*words))
    columns = list(found[0] if found else _COLUMNS)
    columns.sort(key="folder".__eq__)  # to the end, as it is long
    frame: pandas.DataFrame = module.DataFrame(found, columns=columns).set_index("run")
    return frame
