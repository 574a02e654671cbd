"""Calls of the program's commands on a run or a config: evaluations, exports, settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Union

from .command import Started
from .errors import PathLike, StepopError
from .eval.evaluation import Evaluation, open
from .run import Run
from .training import Configs, change_words, paths_of

RunOrPath = Union[Run, PathLike]
Changes = Optional[Mapping[str, Any]]


def evaluate(
    run: RunOrPath,
    changes: Changes = None,
    *,
    checkpoint: Union[int, PathLike, None] = None,
    name: Optional[str] = None,
    config: Configs = (),
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Evaluation:
    """Evaluates a checkpoint of a run, as `stepop -p RUN` does, and returns the new evaluation.

    `run` is a `Run` or its folder. `changes` are values for keys of the config, which is the run's,
    or that of `config`, a YAML file or a list of them. `checkpoint` is a step, `latest` (the
    default), `best` or a path. `name` is the name of the evaluation, with which the names of its
    numbers begin. `flags` are more words for the command line. The lines of the program are shown,
    not with `quiet`. A Ctrl-C stops the program.

    Throws StepopError with the program's last lines when it fails, also when a callback did, and
    when no outputs are left, as with `--check` or `eval_hook/clean_after_callbacks`.
    """
    words = _words(config, changes, flags, checkpoint=_chosen(run, checkpoint), name=name)
    return _evaluation("evaluate", ["-p", _path(run), *words], quiet)


def predict(
    run: RunOrPath,
    config: Configs = (),
    changes: Changes = None,
    *,
    checkpoint: Union[int, PathLike, None] = None,
    name: Optional[str] = None,
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Evaluation:
    """Computes what the network of a run makes of `datasets/predict`, as `stepop predict` does.

    `config` is a YAML file, or a list of them, with that dataset; it overrides the run's config.
    `changes` may name the dataset instead.
    The other parameters, the result and the errors are those of `stepop.evaluate`.
    """
    words = _words(config, changes, flags, checkpoint=_chosen(run, checkpoint), name=name)
    return _evaluation("predict", ["predict", _path(run), *words], quiet)


def run_callbacks(
    path: RunOrPath,
    callbacks: Sequence[str],
    changes: Changes = None,
    *,
    config: Configs = (),
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Evaluation:
    """Runs callbacks on outputs that are there, as `stepop eval` does, and returns the evaluation,
    whose `scalars` then have their numbers.

    `path` is an `outputs.h5`, an evaluation's folder, or a run, of which the latest evaluation is
    taken. `callbacks` are names such as `accuracy`, `name:callback` or `./script.py`; `changes` are
    their parameters: `{"accuracy/target": "class"}`. `config` is a YAML file, or a list of them,
    with more. Throws StepopError with the program's last lines when a callback fails.
    """
    named = [word for callback in callbacks for word in ("-c", callback)]
    words = ["eval", _path(path), *named, *_words(config, changes, flags)]
    return _evaluation("run_callbacks", words, quiet)


def export(
    run: RunOrPath,
    output: Optional[PathLike] = None,
    changes: Changes = None,
    *,
    checkpoint: Union[int, PathLike, None] = None,
    network: Optional[str] = None,
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Path:
    """Writes a network of a run for other programs, as `stepop export` does, and returns the file.

    `output` is a file `.pt` (TorchScript), `.pt2` (torch.export) or `.onnx`, by default one in the
    run's folder. `network` is needed where a run has several. The other parameters are those of
    `stepop.evaluate`. Throws StepopError with the program's last lines when it fails.

    >>> stepop.export("logs/2026-11-21T10-00-00_digits", "net.pt", quiet=True).name
    'net.pt'
    """
    named = {"checkpoint": _chosen(run, checkpoint), "output": output, "network": network}
    words = _words((), changes, flags, **named)
    words = ["export", _path(run), *words]
    return Path(_result("export", words, quiet, "file"))


def tune(
    config: Configs,
    changes: Changes = None,
    *,
    time: Optional[str] = None,
    output: Optional[PathLike] = None,
    flags: Sequence[str] = (),
    quiet: bool = False,
) -> Path:
    """Measures training steps with other settings, as `stepop tune` does, and returns the file that
    it wrote: a config to train with, `stepop.train([config, file])`.

    `config` is a YAML file or a list of them; `changes` are values for its keys. `time` is how long
    it may take, such as `2m`. `output` is the file, by default `tuned.yaml` in the current folder.
    `flags=["--lr"]` tests learning rates instead, and `["--batch_size"]` batch sizes: the file is a
    picture. Throws StepopError with the program's last lines when it fails.
    """
    words = ["tune", *_words(config, changes, flags, time=time, output=output)]
    return Path(_result("tune", words, quiet, "file"))


def _path(run: RunOrPath) -> str:
    return os.fspath(run.path if isinstance(run, Run) else run)


def _chosen(run: RunOrPath, checkpoint: Union[int, PathLike, None]) -> Union[int, PathLike, None]:
    return run._checkpoint(checkpoint) if isinstance(run, Run) else checkpoint


def _words(config: Configs, changes: Changes, flags: Sequence[str], **named: Any) -> List[str]:
    paths = paths_of(config)
    words = ["-b", *paths] if paths else []
    for flag, value in named.items():
        words += [] if value is None else [f"--{flag}", str(value)]
    return [*words, *flags, *change_words(changes)]


def _evaluation(what: str, words: Sequence[str], quiet: bool) -> Evaluation:
    return open(_result(what, words, quiet, "outputs"))


def _result(what: str, words: Sequence[str], quiet: bool, fact: str) -> str:
    """The file that the program says as this fact."""
    started = Started(words)
    if started.wait(quiet) != 0:
        raise StepopError(started.error())
    found = started.fact(fact)
    if found is None:
        raise StepopError(
            f"{what}: no file was left, as with --check or eval_hook/clean_after_callbacks"
        )
    return found
