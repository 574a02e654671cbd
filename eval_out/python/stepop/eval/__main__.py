"""python -m stepop.eval PATH: what is in an evaluation."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

import numpy as np

from . import Evaluation, EvalError, open
from .arrays import Array


def summary(e: Evaluation) -> str:
    """A few lines: where it comes from, its arrays, the ranges of its labels, its scalars."""
    step = None if e.global_step is None else f"step {e.global_step}"
    origin = ", ".join(part for part in (step, e.split, e.iterator, e.model) if part)
    state = "complete" if e.complete else "not complete: it was killed or still runs"
    lines = [str(e.path), f"{e.rows} rows, {state}", *([origin] if origin else [])]
    if e.git:
        lines.append(f"code: {e.git}")
    arrays = [(f"outputs/{key}", array) for key, array in e.outputs.items()]
    arrays += [(f"labels/{key}", array) for key, array in e.labels.arrays().items()]
    width = max((len(key) for key, _ in arrays), default=0)
    for key, array in arrays:
        range = _range(e, key[len("labels/") :], array) if key.startswith("labels/") else ""
        lines.append(f"  {key:<{width}}  {array.describe()}{range}")
    scalars = e.scalars
    width = max(map(len, scalars), default=0)
    lines += [f"  {name:<{width}}  {value:.6g}" for name, value in scalars.items()]
    return "\n".join(lines)


def _range(e: Evaluation, label: str, array: Array) -> str:
    if array.kind != "numbers" or array.dtype.kind not in "biuf" or 0 in array.shape:
        return ""
    counts = e.counting(label)
    values = np.asarray(array, dtype=np.float64)[counts]
    numbers = values[~np.isnan(values)]
    nans = values.size - numbers.size
    left_out = int(len(counts) - counts.sum())
    parts = [f"{nans} NaN"] if nans else []
    if left_out:
        parts.append(f"{left_out} row{'s' if left_out > 1 else ''} of weight 0 left out")
    if numbers.size:
        parts = [f"{numbers.min():.6g} to {numbers.max():.6g}, mean {numbers.mean():.6g}", *parts]
    return "  " + ", ".join(parts)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m stepop.eval", description="Says what is in an evaluation of stepop."
    )
    parser.add_argument("path", help="a run, an evaluation's folder, or a file")
    parser.add_argument("--step", type=int, help="of a run, the evaluation of this step")
    options = parser.parse_args(arguments)
    try:
        with open(options.path, options.step) as evaluation:
            print(summary(evaluation))
    except EvalError as error:
        print(f"stepop.eval: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
