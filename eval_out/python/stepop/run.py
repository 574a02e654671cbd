"""A run: what its folder says of it, and what can be done with it while it trains."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from .command import POLL_SECONDS, Started
from .errors import PathLike, StepopError, pandas_module, yaml_text
from .eval.config import without_escapes
from .eval.errors import EvalError
from .eval.follow import METRICS, Line, Process, lives, read_lines, read_process
from .eval.locate import find_all
from .eval.series import Evaluations
from .eval.tables import nested
from .files import Checkpoint, Images, Logs, Start, Weights
from .files import read_checkpoints, read_starts, read_weights, shown_path
from .page import page_of

if TYPE_CHECKING:
    import pandas

# The states of train/process.json, in the words of `stepop runs`.
_STATES = {"done": "ended"}


class Run:
    """The folder of a run, logs/<time>_<name>. All of it is read when it is asked for, so it is up
    to date while the run trains. Throws StepopError when the folder is none.

    >>> run = Run("logs/2026-11-21T10-00-00_digits")
    >>> run
    <Run logs/2026-11-21T10-00-00_digits: ended, step 46>
    >>> run.config["batch_size"]
    64
    """

    def __init__(self, path: PathLike, started: Optional[Started] = None) -> None:
        #: The run's folder, absolute.
        self.path = Path(os.path.abspath(path))
        #: Its folder of the training.
        self.train = self.path / "train"
        if not self.train.is_dir():
            found = "no run of a training: it has no folder train"
            raise StepopError(f"{path}: {found if self.path.is_dir() else 'no such folder'}")
        self._started = started
        self._logs = Logs(self.path)
        self._ranked_by: Tuple[str, str] = ("", "")  # of a sweep: metric and mode

    @property
    def name(self) -> str:
        """The folder's name: <time>_<name>."""
        return self.path.name

    @property
    def state(self) -> str:
        """`running`, `ended`, `stopped` (it can be resumed), `failed`, `killed` or `unknown`."""
        state = self.state_of(self.process())
        return _STATES.get(state, state)

    def process(self) -> Optional[Process]:
        """Who trains it, or did last; nothing where none trained."""
        return read_process(self.train)

    def state_of(self, process: Optional[Process]) -> str:
        """The state with which such a process leaves it, in the words of train/process.json: `done`
        for `ended`."""
        if process is None:
            return "unknown"
        is_dead = process.state == "running" and not lives(process, self.train)
        return "killed" if is_dead else process.state

    @property
    def sweep(self) -> Optional[str]:
        """The name of the sweep that the run is one of: it lies in logs/sweeps/<name>/."""
        above = self.path.parent
        return above.name if above.parent.name == "sweeps" else None

    @property
    def error(self) -> str:
        """Why its training failed; empty for a run that did not."""
        process = self.process()
        if process is None or self.state != "failed":
            return ""
        return process.error or f"see {self.train / 'log.txt'}"

    @property
    def step(self) -> int:
        """The last step that has logged anything; 0 before."""
        return max(self._logs.read().rows, default=0)

    @property
    def config(self) -> Dict[str, Any]:
        """The resolved config of the newest start. Throws StepopError."""
        path = self.config_file()
        try:
            import yaml
        except ImportError:
            raise StepopError(f"{path}: to read it, install PyYAML: pip install pyyaml") from None
        try:
            config = without_escapes(yaml.safe_load(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise StepopError(f"{path}: cannot read it: {error}") from error
        if not isinstance(config, dict):
            raise StepopError(f"{path}: it is no map")
        return config

    def config_file(self) -> Path:
        """The config of the newest start. Throws StepopError when there is none."""
        files = sorted((self.path / "configs").glob("train_*.yaml"))
        if not files:
            raise StepopError(f"{self.path}: it has no configs/train_<time>.yaml")
        return files[-1]

    def code(self) -> Optional[Path]:
        """The folder with the user's own code of the newest start that has some."""
        folder = self.path / "code"
        starts = sorted(one for one in folder.glob("*") if one.is_dir()) if folder.is_dir() else []
        return starts[-1] if starts else None

    def lines(self) -> Iterator[Line]:
        """The lines of its metrics as they are now."""
        return read_lines(self.train / METRICS)

    @property
    def metrics(self) -> "pandas.DataFrame":
        """What it has logged so far: a row for each step, a column for each number, such as
        `train/log_op/loss`; NaN where a step has no such number. Throws StepopError without
        pandas."""
        module = pandas_module("metrics")
        rows = self._logs.read().rows
        steps = sorted(rows)
        columns = list(dict.fromkeys(name for step in steps for name in rows[step]))
        index = module.Index(steps, name="step", dtype="int64")
        frame: pandas.DataFrame = module.DataFrame(
            [rows[step] for step in steps], index, columns, dtype="float64"
        )
        return frame

    @property
    def images(self) -> Images:
        """The pictures that it has so far, by their keys: what the training logged,
        `run.images["train/log_op/input"][-1]`, and what evaluations made, as
        `run.images["eval/confusion_matrix/matrix"][-1]`, whose `evaluation` says which one."""
        return self._logs.read().images()

    @property
    def checkpoints(self) -> List[Checkpoint]:
        """The checkpoints that are there, by step."""
        metric = self._metric()
        values = {
            step: row[metric] for step, row in self._logs.read().rows.items() if metric in row
        }
        return read_checkpoints(self.train / "checkpoints", values)

    @property
    def starts(self) -> List[Start]:
        """The starts of its trainings, the first one first: time, kind, host, commit, command."""
        return read_starts(self.path / "configs")

    @property
    def evaluations(self) -> Evaluations:
        """Its evaluations by step, as stepop.eval.open_all has them; none before the first one."""
        try:
            return Evaluations(self.path, find_all(self.path))
        except EvalError:
            return Evaluations(self.path, [])

    def weights(
        self, checkpoint: Union[str, int] = "latest", network: Optional[str] = None
    ) -> Weights:
        """The weights of a checkpoint as NumPy arrays by their names, `model.conv1.weight`: of
        `latest`, `best` or a step. With `network="model"` those of this network alone, as
        `conv1.weight`. Throws StepopError.

        >>> Run("logs/2026-11-21T10-00-00_digits").weights("best")["model.conv1.weight"].shape
        (6, 1, 5, 5)
        """
        found = self._checkpoint(checkpoint)
        name = found if isinstance(found, str) else f"model-{found}"
        path = self.train / "checkpoints" / f"{name}.safetensors"
        if not path.exists():
            steps = [one.step for one in self.checkpoints]
            there = (
                f"there are those of steps {', '.join(map(str, steps))}" if steps else "none yet"
            )
            raise StepopError(f"{self}: no checkpoint {checkpoint!r}; {there}")
        return read_weights(path, network)

    def wait(self, quiet: bool = True) -> "Run":
        """Returns when the training is over; with `quiet=False` the lines that its log gets meanwhile
        are shown. A Ctrl-C ends the waiting, not the training. Throws StepopError when the training
        failed."""
        log = self.train / "log.txt"
        shown = log.stat().st_size if not quiet and log.exists() else 0
        is_over = False
        while not is_over:
            is_over = not self._is_alive()  # before the last look
            if not quiet:
                shown = _show_lines(log, shown)
            if not is_over:
                time.sleep(POLL_SECONDS)
        return self.finished()

    def finished(self) -> "Run":
        """This run. Throws StepopError, with the program's last lines, when its training failed."""
        started = self._started
        state = self.state
        error = StepopError(f"{self}: {self.error or 'it ended without a word'}")
        if started is not None and started.process.returncode not in (None, 0):
            if started.process.returncode == 3 or state not in ("ended", "stopped"):
                error = StepopError(f"{started.error()}\n({self})")
                state = "failed"
        if state in ("failed", "killed"):
            error.run = str(self.path)
            raise error
        return self

    def stop(self, wait: bool = True) -> None:
        """Stops the training after its step; it saves a checkpoint, and `stepop.train(run)`
        resumes it. With `wait` this returns when all is saved. Throws StepopError when it trains
        on another machine."""
        process = self.process()
        if process is None or not self._is_alive():
            return
        if process.host != socket.gethostname():
            raise StepopError(
                f"{self}: it trains on {process.host}; there `kill {process.pid}` stops it"
            )
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        while wait and self._is_alive():
            time.sleep(POLL_SECONDS)

    def change(self, changes: Mapping[str, Any], wait: bool = True) -> None:
        """Changes the config of the running training: `run.change({"optimizer/lr": 1e-4})`. The
        training takes it between two steps, seconds later; with `wait` this returns then. Throws
        StepopError when the change is refused, or nothing is training."""
        if self.state != "running":
            raise StepopError(
                f"{self}: no training that could change; stepop.train(run, {{...}}) resumes it "
                f"with another config"
            )
        target = self.train / "change.yaml"
        if target.exists():
            raise StepopError(
                f"{target}: an earlier change waits still; the training takes it soon"
            )
        part = self.train / f".change.yaml.{os.getpid()}.tmp"
        part.write_text(
            yaml_text(nested(copy.deepcopy(dict(changes))), "changes") + "\n", encoding="utf-8"
        )
        inode = part.stat().st_ino
        part.replace(target)
        while wait and not self._has_taken(target, inode):
            time.sleep(POLL_SECONDS)

    def _has_taken(self, target: Path, inode: int) -> bool:
        refused = target.with_name("change.yaml.refused")
        is_over = not self._is_alive()  # before the last look
        if _is_inode(refused, inode):
            raise StepopError(f"{self}: the change is refused: {self._refusal(refused)}")
        if any(_is_inode(path, inode) for path in (self.path / "configs").glob("change_*.yaml")):
            return True
        if is_over and _is_inode(target, inode):
            target.unlink()
            raise StepopError(f"{self}: the training ended before it took the change")
        return False

    def _refusal(self, refused: Path) -> str:
        """Why a change was refused, as the comment at the end of its file says."""
        text = refused.read_text(encoding="utf-8", errors="replace")
        _, mark, reason = text.rpartition("\n# refused: ")
        return reason.strip().replace("\n#   ", "\n") if mark else f"see {self.train / 'log.txt'}"

    def _is_alive(self) -> bool:
        """Whether it trains, or its process still ends."""
        if self._started is not None and self._started.process.poll() is None:
            return True
        return self.state_of(self.process()) == "running"

    def _metric(self) -> str:
        """The metric by which checkpoints are compared; empty for none."""
        with contextlib.suppress(StepopError):
            config = self.config
            for part in ("checkpoints", "stop_when"):
                section = config.get(part)
                if isinstance(section, dict) and section.get("metric"):
                    return str(section["metric"])
        return self._ranked_by[0]

    def _checkpoint(self, name: Union[int, PathLike, None]) -> Union[int, PathLike, None]:
        """`best` of the best run of a sweep as a step, where no checkpoint is marked as the best."""
        metric, mode = self._ranked_by
        marked = self.train / "checkpoints" / "best.safetensors"
        if name != "best" or not metric or marked.exists():
            return name
        known = [one for one in self.checkpoints if one.metric is not None and one.metric == one.metric]
        if not known:
            return name
        choose = max if mode == "max" else min
        return choose(known, key=lambda one: float(one.metric or 0)).step

    def __repr__(self) -> str:
        return f"<Run {shown_path(self.path)}: {self.state}, step {self.step:,}>"

    def _repr_html_(self) -> str:
        return page_of(self.name, self.state, self.error, self._logs.read().rows, self.images)


def _show_lines(path: Path, begin: int) -> int:
    """Prints the whole lines of a file from the byte `begin` on, and returns where they end."""
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            text = file.read()
    except OSError:
        return begin
    text = text[: text.rfind(b"\n") + 1]
    print(text.decode(errors="replace"), end="", flush=True)
    return begin + len(text)


def _is_inode(path: Path, inode: int) -> bool:
    try:
        return path.stat().st_ino == inode
    except OSError:
        return False
