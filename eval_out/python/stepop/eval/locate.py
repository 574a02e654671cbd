"""Where the files of a run's evaluations are."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable, List, NamedTuple, Optional

from .errors import EvalError, PathLike, nearest

OUTPUTS = "outputs.h5"
SCALARS = "scalars.json"


class Found(NamedTuple):
    """The folder of one evaluation: eval/<start>/<step>, of one with a name the folder of that
    name in it."""

    step: int
    start: str
    folder: Path
    name: str = ""

    @property
    def outputs(self) -> Optional[Path]:
        return outputs_in(self.folder)

    @property
    def complete(self) -> bool:
        return (self.folder / OUTPUTS).is_file()

    @property
    def scalars(self) -> Optional[Path]:
        path = self.folder / SCALARS
        return path if path.is_file() else None


def outputs_in(folder: Path) -> Optional[Path]:
    """The file that is complete, else the one of an evaluation that still runs or was killed."""
    # The last look is for one whose .part became the whole file between the first two.
    for name in (OUTPUTS, OUTPUTS + ".part", OUTPUTS):
        if (folder / name).is_file():
            return folder / name
    return None


def find(path: PathLike, step: Optional[int] = None) -> Path:
    """The file that `path` means: itself, that of an evaluation's folder, or the latest of a run.
    Throws EvalError when there is none."""
    given = existing(path)
    direct = given if given.is_file() else outputs_in(given)
    if direct is not None:
        if step is not None:
            raise EvalError(f"{given} is one evaluation; a step is chosen from those of a run")
        return direct
    found = [one for one in find_all(given) if one.outputs is not None]
    if not found:
        raise EvalError(
            f"{given}: its evaluations left no outputs: eval_hook/clean_after_callbacks "
            f"removes them; their scalars are in open_all(...).scalars"
        )
    if step is not None:
        steps = sorted({one.step for one in found})
        found = [one for one in found if one.step == step]
        if not found:
            raise EvalError(
                f"{given}: no evaluation of step {step}; there are those of {_list(steps)}"
            )
    best = latest(found)
    outputs = best.outputs
    if outputs is None:
        raise EvalError(f"{best.folder}: its outputs vanished; was it cleaned up?")
    return outputs


def latest(found: Iterable[Found]) -> Found:
    """Of the complete ones, when there are any: that of the last start, and of its last step;
    those without a name come before the others."""
    return max(found, key=lambda one: (one.complete, not one.name, one.start, one.step))


def find_all(path: PathLike) -> List[Found]:
    """The evaluations below a run, its folder `eval` or one of the folders in that, by step, then
    by start; also those with a name. Throws EvalError when there is none."""
    given = existing(path)
    if given.is_file() or outputs_in(given) is not None:
        raise EvalError(f"{given} is one evaluation, which open() opens; open_all() takes a run")
    is_run = (given / "eval").is_dir()
    parent = given / "eval" if is_run else given
    groups = [given] if _steps(given) else [one for one in _folders(parent) if _steps(one)]
    found = [
        Found(int(step.name), group.name, folder, "" if folder == step else folder.name)
        for group in groups
        for step in _steps(group)
        for folder in [step, *_folders(step)]
        if outputs_in(folder) is not None or (folder / SCALARS).is_file()
    ]
    if not found:
        raise EvalError(_nothing(given, is_run))
    return sorted(found)


def existing(path: PathLike) -> Path:
    given = Path(path)
    if given.exists():
        return given
    part = given.with_name(given.name + ".part")
    if part.exists():
        raise EvalError(
            f"{given}: no such file; {part} holds the rows of an unfinished evaluation"
        )
    parent = given.parent
    names = [one.name for one in parent.iterdir()] if parent.is_dir() else []
    raise EvalError(f"{given}: no such file or folder{nearest(given.name, names).rstrip(';')}")


def _nothing(given: Path, is_run: bool) -> str:
    if is_run or (given / "train").is_dir():
        return (
            f"{given}: this run has no evaluation yet; there is one after each epoch, or with "
            f"`stepop -p {given}`"
        )
    runs = [
        one.name for one in _folders(given) if (one / "train").is_dir() or (one / "eval").is_dir()
    ]
    if runs:
        return f"{given}: a folder of runs; open one of them, such as {given / max(runs)}"
    return f"{given}: neither a run nor an evaluation: it has no folder eval and no {OUTPUTS}"


def _folders(parent: Path) -> List[Path]:
    if not parent.is_dir():
        return []
    return sorted(one for one in parent.iterdir() if one.is_dir() and not one.name.startswith("."))


def _steps(group: Path) -> List[Path]:
    return [one for one in _folders(group) if one.name.isascii() and one.name.isdigit()]


def _list(steps: List[int]) -> str:
    shown = [str(step) for step in (steps if len(steps) <= 8 else steps[:3] + steps[-3:])]
    if len(steps) > 8:
        shown.insert(3, "...")
    return ("steps " if len(steps) > 1 else "step ") + ", ".join(shown)
