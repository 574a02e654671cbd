"""Starts trainings."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import tempfile
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Union

from .command import Started
from .errors import PathLike, StepopError, yaml_text
from .eval.tables import nested
from .run import Run

# A file, or what a file would have.
Config = Union[PathLike, Mapping[str, Any]]
Configs = Union[Config, Sequence[Config]]
MADE = ".config_"  # how the files begin that are made of dicts


def list_of(configs: Configs) -> List[Config]:
    """The configs as a list, of which a later one overrides the earlier ones."""
    return [configs] if isinstance(configs, (str, os.PathLike, Mapping)) else [*configs]


def paths_of(configs: Configs) -> List[str]:
    """The same where only files will do. Throws StepopError for a dict."""
    if any(isinstance(config, Mapping) for config in list_of(configs)):
        raise StepopError("a config is a path here: write the dict as a YAML file")
    return [os.fspath(path) for path in list_of(configs)]  # type: ignore[arg-type]


@contextlib.contextmanager
def files_of(configs: Configs) -> Iterator[List[str]]:
    """The same, with a file for each dict while this lasts. It is in this folder, to which paths
    in it are relative."""
    with contextlib.ExitStack() as made:
        paths = []
        for config in list_of(configs):
            if isinstance(config, Mapping):
                text = yaml_text(nested(copy.deepcopy(dict(config))), "config") + "\n"
                file = made.enter_context(
                    tempfile.NamedTemporaryFile(
                        "w", encoding="utf-8", prefix=MADE, suffix=".yaml", dir="."
                    )
                )
                file.write(text)
                file.flush()
                paths.append(os.path.relpath(file.name))
            else:
                paths.append(os.fspath(config))
        yield paths


def without_made(text: str) -> str:
    """Lines of the program as a reader wants them, who does not know the files of dicts."""
    return re.sub(rf"{re.escape(MADE)}\w+\.yaml(:[0-9]+)?(?=[: ,\n]|$)", "config", text)


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

    `config` is a YAML file, a dict as one would hold it, or a list of them, of which a later one
    overrides the earlier ones; a `Run`, or its folder, is resumed. `changes` are values for keys of the config:
    `{"optimizer/lr": 1e-3}`; a dict among them merges as a further config would, and one with a
    `class` takes the place of what is there. `name` is the end of the new folder's name, by default the config's
    `experiment_name`; `logs` is the folder of new runs. `flags` are more words for the command
    line, such as `["--processes", "2"]`.

    With `wait` the lines of the program are shown (not with `quiet`) until the training is over,
    and a Ctrl-C, SIGTERM or SIGHUP stops it after its step, saved. Without, this returns as soon as the run has its
    folder, and the training continues when this Python ends.

    Throws StepopError with the program's last lines when it fails; `error.run` is the run's folder
    if it has one.
    """
    with _source(config, name, logs) as source:
        words = [*source, "-t", *flags, *change_words(changes)]
        started = Started(words, without_made)
        found = started.wait_for_fact("run", quiet or not wait)
    if found is None and started.process.returncode == 0:
        raise StepopError(f"train: no run was named; flags such as --check make none: {[*flags]}")
    if found is None:
        raise StepopError(started.error())
    run = Run(found, started)
    if wait:
        started.wait(quiet)
        run.finished()
    return run


@contextlib.contextmanager
def _source(
    config: Union[Run, Configs], name: Optional[str], logs: Optional[PathLike]
) -> Iterator[List[str]]:
    if isinstance(config, Run):
        config = config.path
    if isinstance(config, (str, os.PathLike)) and os.path.isdir(config):
        if name is not None or logs is not None:
            raise StepopError(f"{config}: a run that is resumed keeps its name and its folder")
        yield ["-p", os.fspath(config)]
        return
    words = [] if name is None else ["-n", name]
    words += [] if logs is None else ["--logs", os.fspath(logs)]
    with files_of(config) as paths:
        if not paths:
            raise StepopError("train: no config: give a YAML file, a dict, a list of them, or a run")
        yield ["-b", *paths, *words]
