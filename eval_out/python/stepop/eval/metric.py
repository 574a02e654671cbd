"""A metric of torchmetrics, of scikit-learn or of the user's own over the outputs of an evaluation.

stepop's callback PythonMetric runs `main`. The last line that is printed is a JSON object of the
scalars; with the exit status REFUSED it is a JSON text, the reason.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib
import inspect
import json
import re
import sys
import traceback
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import numpy as np

from ..objects import read_place, run_file
from .arrays import Array
from .errors import EvalError, nearest
from .evaluation import Evaluation
from .rows import blocks

REFUSED = 65
MOST_GROUPS = 50
# The class of a row that does not count, as PyTorch's ignore_index has it.
LEFT_OUT_CLASS = -100
# Characters of what an exception says, and of each end of its traceback.
MOST_SAID = 2000
MOST_TRACEBACK = 4000
# A longer vector is no list of classes; it becomes a file.
MOST_ENTRIES = 1000
# Modules whose names in pip are not the user's own, and these names.
PACKAGES = {name: name for name in ("torchmetrics", "torch", "scipy", "matplotlib")}
PACKAGES.update(sklearn="scikit-learn", skimage="scikit-image")
# The first argument of a function that takes the prediction before the target.
PREDICTIONS = {"preds", "pred", "prediction", "predictions", "y_pred", "y_score", "logits", "input"}


class Refused(Exception):
    """Why there is no result, and what helps."""


def _missing(module: str) -> Refused:
    package, python = PACKAGES.get(module, module), sys.executable
    return Refused(f"the Python {python} has no {package}: {python} -m pip install {package}")


def _shortened(text: str, begin: int, end: int) -> str:
    return text if len(text) <= begin + end else f"{text[:begin]} ... {text[len(text) - end :]}"


def _said(error: BaseException) -> str:
    """What an exception says. Its __str__ is the user's code, which may fail."""
    try:
        return _shortened(str(error), MOST_SAID, 0)
    except Exception as failure:
        return f"(its message cannot be read: {type(failure).__name__})"


@contextlib.contextmanager
def _calling(what: str, is_own: bool, help: str = "") -> Iterator[None]:
    """Says what failed and why; for the user's own code with the lines where it did."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {_said(error)}".rstrip(": \n")
        if is_own and traceback.extract_tb(error.__traceback__)[-1].filename != __file__:
            lines = traceback.format_exc(limit=-2).rstrip()
            help = f"\n{_shortened(lines, MOST_TRACEBACK, MOST_TRACEBACK)}"
        raise Refused(f"{what}: {reason}{help}") from error


def find_metric(place: str) -> Any:
    """`torchmetrics.AUROC`, `my_package.my_module:my_metric` or `my_metrics.py:my_metric`."""
    where, parts = read_place(place) or ("", [])
    if where.endswith(".py"):
        with _calling(where, is_own=True):
            found = run_file(where)
    else:
        where, *parts = place.replace(":", ".").split(".")
        if not parts or not all(part.isidentifier() for part in (where, *parts)):
            raise Refused(f'metric: expected a name such as torchmetrics.AUROC, found "{place}"')
        found = _import(where)
    for part in parts:
        if hasattr(found, "__path__") and not hasattr(found, part):
            _import(f"{where}.{part}")
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if n[0] != "_"])
            help = f"; did you mean {' or '.join(near)}?" if near else ""
            raise Refused(f"metric: {where} has no {part}{help}")
        found, where = getattr(found, part), f"{where}.{part}"
    # torchmetrics.AUROC makes an object of another class by its __new__.
    if not callable(found) or (isinstance(found, type) and not hasattr(found, "compute")):
        raise Refused(
            f"metric: {place} is a {'class' if callable(found) else type(found).__name__}, not a "
            f"function f(target, prediction) or a class with update() and compute()"
        )
    return found


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name and "." in name:
            return None  # a name that its package does not have
        if error.name != name or name in PACKAGES:
            raise _missing(str(error.name).split(".")[0]) from error
        help = nearest(name, PACKAGES) or (
            "; a module of your own lies in the folder where stepop runs, or is named by its file: "
            f"{name}.py:my_metric"
        )
        raise Refused(f"metric: the Python {sys.executable} has no module {name}{help}") from error
    except ImportError as error:
        raise Refused(f"metric: {name} cannot be imported: {error}") from error


class Metric:
    """A metric over rows that come in pieces. A class of torchmetrics keeps its own state; for a
    function the rows are kept and handed over together."""

    def __init__(self, place: str, kwargs: Mapping[str, Any]) -> None:
        self.name = re.split("[.:]", place)[-1]
        self._found, self._kwargs = find_metric(place), dict(kwargs)
        self.is_class = hasattr(self._found, "compute")
        module = str(getattr(self._found, "__module__", "")).split(".")[0]
        self.is_own = module not in PACKAGES
        names: List[str] = []
        with contextlib.suppress(TypeError, ValueError):  # what is not written in Python
            names = list(inspect.signature(self._found).parameters)
        self._prediction_first = bool(names) and names[0] in PREDICTIONS
        self.near = "".join(nearest(key, names) for key in kwargs if key not in names)
        self.made: Any = None
        if self.is_class:
            with _calling(f"{place} with kwargs {json.dumps(kwargs)}", self.is_own, self.near):
                is_made = not isinstance(self._found, type)
                self.made = copy.deepcopy(self._found) if is_made else self._found(**kwargs)
        modules = {module, *(base.__module__.split(".")[0] for base in type(self.made).mro())}
        self._takes_tensors = bool(modules & {"torch", "torchmetrics"})
        self._rows: List[Any] = []

    def update(self, prediction: Any, target: Any) -> None:
        if self.is_class:
            self.made.update(self._handed(prediction), self._handed(target))
        else:
            self._rows.append((prediction, target))

    def value(self) -> Any:
        if self.is_class:
            return self.made.compute()
        pair = [self._handed(np.concatenate(parts)) for parts in zip(*self._rows)]
        return self._found(*(pair if self._prediction_first else pair[::-1]), **self._kwargs)

    def _handed(self, values: Any) -> Any:
        if values.dtype == object:  # texts, or arrays of several lengths
            return [row if isinstance(row, str) else self._handed(row) for row in values]
        if not self._takes_tensors:
            return values
        import torch

        if values.dtype.kind == "u" and values.dtype.itemsize > 1:
            values = values.astype(np.int64)  # torch computes little with these
        return torch.from_numpy(np.ascontiguousarray(values))


def array_of(e: Evaluation, parameter: str, key: str) -> Array:
    known: Dict[str, Array] = {f"outputs/{name}": array for name, array in e.outputs.items()}
    known.update({f"labels/{name}": array for name, array in e.labels.arrays().items()})
    for full in (key, f"outputs/{key}", f"labels/{key}"):
        if full in known:
            return known[full]
    help = nearest(key, [*known, *(name.split("/", 1)[1] for name in known)]) or ";"
    raise Refused(f'{parameter}: no "{key}"{help} the evaluation has {", ".join(known) or "none"}')


def transformed(values: Any, how: str, key: str, first_row: int) -> Any:
    """Scores as `prediction_as` says: the classes are the first dimension after the rows."""
    if how == "raw":
        return values
    if values.dtype.kind not in "fiu" or (how != "sigmoid" and values.ndim < 2):
        needed = "numbers" if how == "sigmoid" else "scores [rows, classes]"
        found = f"{values.dtype} {['rows', *values.shape[1:]]}".replace("'", "")
        raise Refused(f"prediction_as: {how} takes {needed}, and {key} is {found}")
    if how == "argmax":
        bad = np.flatnonzero(np.isnan(values).reshape(len(values), -1).any(axis=1))
        if len(bad):
            raise Refused(
                f"prediction_as: argmax: row {first_row + int(bad[0])} of {key} has a NaN"
            )
        return values.argmax(axis=1)
    values = values.astype(np.float64)  # so that fewer scores become equal
    if how == "sigmoid":
        return np.exp(-np.logaddexp(0, -values))
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def groups_of(e: Evaluation, key: str) -> Dict[str, Any]:
    """Which rows are in each group, bool [rows], by the group's name in the scalars."""
    array = array_of(e, "by", key)
    if array.ndim != 1 or (array.kind != "text" and array.dtype.kind not in "biu"):
        raise Refused(f"by: {key} is {array.describe()}, not a text or a whole number for each row")
    values, numbers = np.unique(np.asarray(array), return_inverse=True)
    if len(values) > MOST_GROUPS:
        raise Refused(f"by: {key} has {len(values)} values; there are at most {MOST_GROUPS} groups")
    names = [re.sub(r"[/\s]+", "_", str(value)) or "empty" for value in values]
    if len(set(names)) < len(names):
        raise Refused(f"by: {key} has values that differ in spaces or slashes only: {list(values)}")
    return {f"{key}/{name}": numbers == i for i, name in enumerate(names)}


def flat(name: str, value: Any) -> Dict[str, Any]:
    """The entries of a result by name: floats, and what is no list of numbers as it is."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= MOST_ENTRIES:
        value = value.tolist()
    if isinstance(value, (list, tuple)) and not any(map(_is_array, value)):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        return {k: v for key, each in value.items() for k, v in flat(f"{name}/{key}", each).items()}
    if value is None:
        return {}
    return {name: value if isinstance(value, str) or _is_array(value) else float(value)}


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or np.ndim(value) > 0


def _arrays(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _arrays(f"{name}.{i}" if name else str(i), each)
    elif value is not None:
        yield name or "0", np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def keep(folder: Path, scalars: Dict[str, float], result: Mapping[str, Any], ending: str) -> None:
    """Numbers become scalars; matrices, curves and texts become files. `ending` follows the name of
    each entry: `/site/north`."""
    for entry, value in result.items():
        path = folder / f"{entry}{ending}".replace("/", "_")
        if isinstance(value, float):
            scalars[f"{entry}{ending}"] = value
            continue
        folder.mkdir(exist_ok=True)
        if isinstance(value, str):
            Path(f"{path}.txt").write_text(value, encoding="utf-8")
        elif isinstance(value, np.ndarray) and value.ndim == 2:
            form = "%d" if value.dtype.kind in "biu" else "%.17g"
            np.savetxt(f"{path}.csv", value, fmt=form, delimiter=",")
        else:
            np.savez(f"{path}.npz", **dict(_arrays("", value)))


def measure(e: Evaluation, folder: Path, options: Mapping[str, str]) -> Dict[str, float]:
    place, how = options["metric"], options.get("prediction_as", "raw")
    kwargs = json.loads(options.get("kwargs", "{}"))
    whole = Metric(place, kwargs)
    keys = [options.get("prediction", "logits"), options.get("target", "class")]
    prediction, target = map(array_of, (e, e), ("prediction", "target"), keys)
    groups = groups_of(e, options["by"]) if "by" in options else {}
    parts = {name: copy.deepcopy(whole) for name in groups}
    empty = copy.deepcopy(whole)
    plots = options.get("plot") == "true"
    if plots:
        if not hasattr(whole.made, "plot"):
            raise Refused(f"plot: {place} has no plot(); the classes of torchmetrics have")
        _import("matplotlib").use("Agg")
    if e.rows == 0:
        raise Refused("the evaluation has no rows")

    # As in the other callbacks, unless the metric itself leaves out a class.
    are_numbers = target.kind == "numbers" and target.ndim == 1 and target.dtype.kind == "i"
    leaves_out = are_numbers and "ignore_index" not in kwargs
    counts = np.asarray(target) != LEFT_OUT_CLASS if leaves_out else np.ones(e.rows, bool)
    if not counts.any():
        raise Refused(f"nothing counts: {keys[1]} is {LEFT_OUT_CLASS} in every row")

    def read(first: int, last: int) -> Sequence[Any]:
        scores = transformed(prediction.read(first, last), how, keys[0], first)
        return scores, target.read(first, last)

    shapes = [f"{key} ({array.describe()})" for key, array in zip(keys, (prediction, target))]
    may_be_classes = target.dtype.kind in "biu" and target.ndim == prediction.ndim - 1
    help = whole.near
    if how == "raw" and may_be_classes and not whole.is_class and not help:
        help = "; prediction_as: argmax makes classes of scores, softmax makes probabilities"
    scalars: Dict[str, float] = {}
    with _calling(f"{place} of {' and '.join(shapes)}", whole.is_own, help):
        for first, last in blocks(e.rows, prediction.row_bytes + target.row_bytes):
            block = read(first, last)
            for metric, rows in [(whole, counts), *((parts[k], groups[k] & counts) for k in groups)]:
                chosen = rows[first:last]
                if chosen.all():
                    metric.update(*block)
                elif chosen.any():
                    metric.update(*(values[chosen] for values in block))
        keep(folder, scalars, flat(whole.name, whole.value()), "")
        if plots:
            folder.mkdir(exist_ok=True)
            whole.made.plot()[0].savefig(folder / f"{whole.name}.png")
    entries = list(scalars)
    for name, part in parts.items():
        try:
            keep(folder, scalars, flat(whole.name, part.value()), f"/{name}")
        except Exception:  # such as an AUROC of rows of one class
            scalars.update({f"{entry}/{name}": np.nan for entry in entries})
    resamples = int(options.get("bootstrap", "0"))
    drawn = [values[counts] for values in read(0, e.rows)] if resamples else []
    found = _resampled(empty, drawn, resamples) if resamples else {}
    for entry in entries if resamples else []:
        ends = np.percentile(found.get(entry, [np.nan]), [2.5, 97.5])
        scalars[f"{entry}_low"], scalars[f"{entry}_high"] = ends.tolist()
    return scalars


def _resampled(empty: Metric, values: Sequence[Any], count: int) -> Dict[str, List[float]]:
    """The numbers of resamples of the rows, by entry. A resample that gives none is left out."""
    random = np.random.default_rng(0)
    found: Dict[str, List[float]] = {}
    for _ in range(count):
        rows = random.integers(0, len(values[0]), len(values[0]))
        metric = copy.deepcopy(empty)
        with contextlib.suppress(Exception):
            metric.update(*(each[rows] for each in values))
            for entry, number in flat(metric.name, metric.value()).items():
                if isinstance(number, float) and not np.isnan(number):
                    found.setdefault(entry, []).append(number)
    return found


def main() -> None:
    """`NAME OUTPUTS FOLDER --key value ...`, the callback's name and parameters."""
    name, outputs, root, *words = sys.argv[1:]
    try:
        with Evaluation(outputs) as e:
            options = {key[2:]: value for key, value in zip(words[::2], words[1::2])}
            scalars = measure(e, Path(root) / name, options)
    except (Refused, EvalError) as error:
        print(f"\n{json.dumps(str(error))}")
        sys.exit(REFUSED)
    print(f"\n{json.dumps(scalars)}")
