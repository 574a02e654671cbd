"""Sweeps: many runs with other values of a config."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from .command import Started, call
from .errors import PathLike, StepopError, pandas_module, yaml_text
from .files import shown_path
from .run import Run
from .training import Configs, paths_of

if TYPE_CHECKING:
    import pandas

MADE = ".sweep_"  # how the files begin that are made of values


class Sweep:
    """The folder of a sweep, logs/sweeps/<name>. What it says is up to date while it runs."""

    def __init__(self, path: PathLike, started: Optional[Started] = None) -> None:
        self.path = Path(os.path.abspath(path))
        self._started = started
        if not (self.path / "plan.yaml").is_file():
            raise StepopError(f"{path}: no sweep: it has no plan.yaml")

    def _results(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(call("sweep", str(self.path), "--table", "--json"))
        return found

    @property
    def metric(self) -> str:
        """The number by which its runs are compared; empty for none."""
        return str(self._results()["metric"])

    @property
    def table(self) -> "pandas.DataFrame":
        """A row for each point, the best one first: its values, and the `best` and `last` metric,
        as means over the keys of `over`. Throws StepopError without pandas."""
        return _frame(self._results()["table"])

    @property
    def results(self) -> "pandas.DataFrame":
        """A row for each run: number, folder, state, step, its values, best, last, error."""
        return _frame(self._results()["runs"])

    @property
    def runs(self) -> List[Run]:
        """Its runs that have begun."""
        return [Run(one["folder"]) for one in self._results()["runs"] if one["folder"]]

    @property
    def best(self) -> Optional[Run]:
        """The run with the best metric; nothing before a run has logged it. `checkpoint="best"` of
        it is, where the config names no `checkpoints/metric`, the best by the sweep's metric."""
        found = self._results()
        runs = [one for one in found["runs"] if one["best"] is not None]
        if not runs or not found["mode"]:
            return None
        choose = max if found["mode"] == "max" else min
        best = Run(choose(runs, key=lambda one: float(one["best"]))["folder"])
        best._ranked_by = (found["metric"], found["mode"])
        return best

    def wait(self, quiet: bool = True) -> "Sweep":
        """Returns when a sweep that this Python started is over; with `quiet=False` the lines that it
        prints meanwhile are shown. Throws StepopError when runs of it failed."""
        if self._started is not None:
            self._started.follow(quiet)
            self.finished()
        return self

    def finished(self) -> "Sweep":
        """This sweep. Throws StepopError when some of its runs failed."""
        if self._started is not None and self._started.process.returncode in (1, 2, 3):
            raise StepopError(self._started.error())
        return self

    def stop(self) -> None:
        """Lets its runs finish their step and save; the same sweep resumes them. Throws
        StepopError when this Python did not start it."""
        if self._started is None:
            raise StepopError(f"{self}: another program runs it; Ctrl-C or `kill` there stops it")
        if self._started.process.poll() is None:
            self._started.process.send_signal(signal.SIGTERM)
            self._started.process.wait()

    def __repr__(self) -> str:
        return f"<Sweep {shown_path(self.path)}>"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(float_format="{:.4g}".format, border=0))


def _frame(rows: List[Dict[str, Any]]) -> "pandas.DataFrame":
    """The rows with a column for each of their values."""
    module = pandas_module("the table of a sweep")
    flat = []
    for row in rows:
        before = {key: row[key] for key in ("number", "folder", "state", "step") if key in row}
        rest = {key: value for key, value in row.items() if key not in before and key != "values"}
        flat.append({**before, **row["values"], **rest})
    frame: pandas.DataFrame = module.DataFrame(flat)
    return frame


def sweep(
    config: Configs,
    grid: Optional[Mapping[str, Sequence[Any]]] = None,
    *,
    points: Optional[Sequence[Mapping[str, Any]]] = None,
    random: Optional[Mapping[str, Any]] = None,
    over: Sequence[str] = (),
    metric: Optional[str] = None,
    mode: Optional[str] = None,
    name: Optional[str] = None,
    jobs: Optional[int] = None,
    wait: bool = True,
    logs: Optional[PathLike] = None,
    quiet: bool = False,
) -> Sweep:
    """Trains with many values of a config, and returns the sweep.

    `config` is a YAML file or a list of them. At least one of these goes with it: `grid`, such as
    `{"optimizer/lr": [1e-3, 3e-3]}`; `points`, maps of keys and values, the `list` of a sweep file;
    `random`, `{"runs": 10, "values": {...}}`. The page of `stepop sweep` explains them. Without any,
    `config` is a sweep file, or the folder of a sweep. `jobs` is how many runs train at a time.

    The same call resumes a sweep that was stopped. With `wait` a Ctrl-C stops it, saved. Without,
    this returns when all values have been tried and the first runs begin.

    Throws StepopError when a value is wrong or, with `wait`, a run failed; the others have trained.
    """
    paths = paths_of(config)
    settings: Dict[str, Any] = {
        "grid": grid,
        "list": points,
        "random": random,
        "metric": metric,
        "mode": mode,
    }
    settings = {key: value for key, value in settings.items() if value is not None}
    if not settings.keys() & {"grid", "list", "random"}:
        if len(paths) != 1 or name or over or settings:
            raise StepopError("sweep: no values: give grid={...}, points=[...] or random={...}")
        return _run(paths[0], jobs, wait, logs, quiet)
    settings["base"] = [os.path.abspath(path) for path in paths]
    settings["name"] = Path(paths[0]).stem if name is None else name
    settings.update({"over": list(over)} if over else {})
    # Paths among the values are relative to the file, so it is in this folder for a moment.
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=MADE, suffix=".yaml", dir="."
    ) as file:
        file.write(yaml_text(settings, "sweep") + "\n")
        file.flush()
        return _run(os.path.relpath(file.name), jobs, wait, logs, quiet)


def _run(
    source: str, jobs: Optional[int], wait: bool, logs: Optional[PathLike], quiet: bool
) -> Sweep:
    words = ["sweep", source]
    words += [] if jobs is None else ["--jobs", str(jobs)]
    words += [] if logs is None else ["--logs", os.fspath(logs)]
    # A reader of the lines does not know the file that is here for a moment.
    is_made = source.startswith(MADE)
    hidden = re.compile(re.escape(source) + r"(:1)?(?=[: ])") if is_made else re.compile(r"$.")
    started = Started(words, lambda text: hidden.sub("sweep", text), has_facts=False)
    begins = r"sweep .*: [0-9]+ runs in (.+), [0-9]+ at a time"
    found = started.wait_for_line(begins, quiet or not wait)
    if found is None:
        raise StepopError(started.error())
    made = Sweep(found[1], started)
    if wait:
        started.wait(quiet)
        made.finished()
    return made
