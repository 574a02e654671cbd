"""Files for the tests, made once by the command and by the real writer.

The build folder is build/ of this tree, or what STEPOP_BUILD says.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
TREE = PACKAGE.parents[1]
BUILD = Path(os.environ.get("STEPOP_BUILD", TREE / "build"))
RUN = "logs/2026-11-21T10-00-00_digits"

# Compiled Python lies in the build folder, not beside the sources.
BYTECODE_IN_BUILD = {"PYTHONPYCACHEPREFIX": str(BUILD / "pycache")}

# What the package stepop starts.
os.environ["STEPOP"] = str(BUILD / "stepop")
os.environ["OMP_NUM_THREADS"] = "1"


def call(*command: object, **options: Any) -> str:
    """What a command printed; throws with its errors when it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **BYTECODE_IN_BUILD}
    options.setdefault("env", environment)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stepop-eval-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@functools.lru_cache(maxsize=None)
def rich() -> Path:
    """A file with every kind of array: see tests/eval_out/write_files.cpp."""
    path = scratch() / "outputs.h5"
    call(BUILD / "stepop_output_files", "rich", path)
    return path


@functools.lru_cache(maxsize=None)
def compressed() -> Path:
    """A file with `compression: gzip`."""
    path = scratch() / "outputs.h5"
    call(BUILD / "stepop_output_files", "gzip", path)
    return path


@functools.lru_cache(maxsize=None)
def folds() -> Path:
    """A run whose validation is the fold 2 of the 40 rows of table.csv beside it: its column `row`
    counts them from 0."""
    folder = scratch()
    (folder / "table.csv").write_text("row,x,y\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(40)))
    train = "class: Csv, path: table.csv, folds: 4, fold: 2, vectors: {x: [x]}, columns: {y: {type: class, key: class}}"
    (folder / "table.yaml").write_text(
        "iterator: Classifier\nmodel: {class: MLP, inputs: 1, classes: 2}\n"
        "eval_hook: {eval_callbacks: []}\ninput: x\n"
        f"datasets: {{train: {{{train}}}, validation: {{class: Csv, fit: train, part: validation}}}}\n"
        "batch_size: 10\nnum_epochs: 1\noptimizer: {class: SGD, lr: 0.01}\n"
    )
    call(BUILD / "stepop", "-n", "table", "-b", "table.yaml", "-t", cwd=folder)
    (made,) = (folder / "logs").iterdir()
    return made


@functools.lru_cache(maxsize=None)
def root() -> Path:
    """A folder in which RUN is a run on the digits with evaluations of steps 23 and 46."""
    folder = scratch()
    config = TREE / "configs" / "digits.yaml"
    call(BUILD / "stepop", "-n", "digits", "-b", config, "-t", "--num_epochs", 2,
         "--extra/bound", ".inf", "--extra/text", '"{{a}}"', cwd=folder)  # fmt: skip
    # Under a time that is known.
    (made,) = (folder / "logs").iterdir()
    run = made.rename(folder / RUN)
    (start,) = (run / "eval").iterdir()
    start.rename(run / "eval" / run.name)
    return folder


def run() -> Path:
    return root() / RUN


def evaluation(step: int) -> Path:
    return run() / "eval" / run().name / str(step)
