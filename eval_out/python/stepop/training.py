"""Starts trainings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Union

from .command import Started
from .errors import PathLike, StepopError, yaml_text
from .run import Run

Configs = Union[PathLike, Sequence[PathLike]]


def paths_of(configs: Configs) -> List[str]:
    """The configs as a list, of which a later one overrides the earlier ones."""
    if isinstance(configs, (str, os.PathLike)):
        return [os.fspath(configs)]
    return [os.fspath(path) for path in configs]


def change_words(changes: Optional[Mapping[str, Any]]) -> List[str]:
    """The changes of a config as words for the command line."""
    items = (changes or {}).items()
    return [f"--{key}={yaml_text(value, f'changes: {key}')}" for key, value in items]


def train(
    config: Union[Run, Configs],
    changes: Optional[Mapping[str, Any]] = None,
    *,
    name: Optional[str] = None,
    wait: bool = True,
    logs: Optional[PathLike] = None,
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Run:
    """Trains, and returns the run.

    `config` is a YAML file or a list of them, of which a later one overrides the earlier ones; a
    `Run`, or its folder, is resumed. `changes` are values for keys of the config:
    `{"optimizer/lr": 1e-3}`. `name` is the end of the new folder's name, by default the config's
    `experiment_name`; `logs` is the folder of new runs. `flags` are more words for the command
    line, such as `["--processes", "2"]`.

    With `wait` the lines of the program are shown (not with `quiet`) until the training is over,
    and a Ctrl-C, SIGTERM or SIGHUP stops it after its step, saved. Without, this returns as soon as the run has its
    folder, and the training goes on when this Python ends.

    Throws StepopError with the program's last lines when it fails; `error.run` is the run's folder
    if it has one.
    """
    words = [*_source(config, name, logs), "-t", *flags, *change_words(changes)]
    started = Started(words)
    found = started.wait_for_line("run {2,}(.+)", quiet or not wait)
    if found is None and started.process.returncode == 0:
        raise StepopError(f"train: no run was named; flags such as --check make none: {[*flags]}")
    if found is None:
        raise StepopError(started.error())
    run = Run(Path(found[1]), started)
    if wait:
        started.wait(quiet)
        run.finished()
    return run


def _source(
    config: Union[Run, Configs], name: Optional[str], logs: Optional[PathLike]
) -> List[str]:
    if isinstance(config, Run):
        config = config.path
    if isinstance(config, (str, os.PathLike)) and os.path.isdir(config):
        if name is not None or logs is not None:
            raise StepopError(f"{config}: a run that is resumed keeps its name and its folder")
        return ["-p", os.fspath(config)]
    paths = paths_of(config)
    if not paths:
        raise StepopError("train: no config: give a YAML file, a list of them, or a run")
    words = ["-b", *paths]
    words += [] if name is None else ["-n", name]
    return words + ([] if logs is None else ["--logs", os.fspath(logs)])
