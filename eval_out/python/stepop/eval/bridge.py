"""Sends a run to a service that shows runs: what is common to Weights & Biases and MLflow.

The service is sent what is in the run's files, and what was sent is kept in a folder of the run:
`bridge.json` (the service's own id of the run), `sent.txt` (a checksum of each line of the metrics
that it has) and `lock`, which lets only one process do so at a time.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import dataclasses
import errno
import fcntl
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

from ..errors import StepopError
from ..run import Run
from .errors import EvalError
from .follow import IMAGES, SOUNDS, TEXTS, VIDEOS, Follower, Line, Process, Row

POLL_SECONDS = 0.5
# So long a bridge waits for that of the start before, which sends its rest.
WAIT_FOR_LOCK_SECONDS = 900.0


class Kept(NamedTuple):
    """What the service may keep of what it was sent."""

    step: int  # up to this one it has all that the run has; -1: nothing
    is_stale: bool  # whether it has something of later steps that the run has no more
    is_partial: bool  # whether it has a part of the next step
    is_all: bool  # whether the run has no more than that


class Memory:
    """What is remembered in the run of what the service has."""

    def __init__(self, folder: Path, target: Dict[str, Any]) -> None:
        self._folder = folder
        self._target = target
        folder.mkdir(exist_ok=True)
        try:
            state = json.loads((folder / "bridge.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            state = {}
        self._state: Dict[str, Any] = state if isinstance(state, dict) else {}
        self._is_same = self._state.get("target") == target

    @property
    def id(self) -> Optional[str]:
        """The service's id of the run; nothing when it is sent for the first time."""
        given = self._state.get("id")
        return given if isinstance(given, str) and given else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was sent before, but to another place."""
        return self.id is not None and not self._is_same

    @property
    def end(self) -> Any:
        """As `save` was given it, once all was sent."""
        return self._state.get("end") if self._is_same else None

    def save(self, id: str, end: Any = None) -> None:
        if not self._is_same:
            with contextlib.suppress(FileNotFoundError):
                (self._folder / "sent.txt").unlink()
        self._state = {"id": id, "target": self._target, "end": end}
        part = self._folder / "bridge.json.tmp"
        part.write_text(json.dumps(self._state) + "\n", encoding="utf-8")
        part.replace(self._folder / "bridge.json")
        self._is_same = True

    def kept(self, lines: Iterator[Line]) -> Kept:
        """What was sent and is still in the run. A resume from an earlier checkpoint logs later
        steps again; an evaluation adds a line to a step."""
        sent = self._sent()
        steps: List[int] = []
        following: Optional[int] = None
        for i, line in enumerate(lines):
            if i == len(sent) or (line.step, line.check) != sent[i]:
                following = line.step
                break
            steps.append(line.step)
        stale = sent[len(steps)][0] if len(steps) < len(sent) else None
        is_partial = bool(steps) and following == steps[-1]
        ends = [one for one in (following, stale) if one is not None]
        good = [one for one in steps if not ends or one < min(ends)]
        step = good[-1] if good else -1
        return Kept(step, stale is not None, is_partial, not ends)

    def _sent(self) -> List[Tuple[int, int]]:
        if not self._is_same:
            return []
        try:
            texts = (self._folder / "sent.txt").read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return []
        sent = []
        for text in texts:
            parts = text.split()
            if len(parts) != 3 or not all(part.isdigit() for part in parts[:2]):
                break  # half a line
            sent.append((int(parts[0]), int(parts[1])))
        return sent

    def keep(self, lines: Iterator[Line], step: int) -> None:
        """From here on the service has the lines up to that step, and no others."""
        part = self._folder / "sent.txt.tmp"
        with open(part, "w", encoding="utf-8") as file:
            for line in lines:
                if line.step <= step:
                    file.write(_sent_line(line.step, line.check))
        part.replace(self._folder / "sent.txt")

    def add(self, rows: Sequence[Row]) -> None:
        text = "".join(_sent_line(row.step, check) for row in rows for check in row.checks)
        with open(self._folder / "sent.txt", "a", encoding="utf-8") as file:
            file.write(text)


def _sent_line(step: int, check: int) -> str:
    return f"{step} {check} .\n"


class Backend(abc.ABC):
    """A service. What its functions throw ends the bridge, and nothing else."""

    #: The integration's name in the config, and of the folder in the run.
    name: str
    #: Its name for people.
    title: str
    #: The Python package that it needs.
    package: str
    #: The keys of the integration that the command line can set, with what they are.
    options: Dict[str, str]

    def __init__(
        self, run: Run, settings: Dict[str, Any], given: Dict[str, Any], is_beside: bool
    ) -> None:
        self.run = run
        self.settings = {**settings, **given}
        self.given = given  # on the command line
        self.is_beside = is_beside

    @classmethod
    def not_installed(cls) -> EvalError:
        return EvalError(
            f"{cls.title} is not installed for {sys.executable}: pip install {cls.package}"
        )

    def off(self) -> Optional[str]:
        """By what it is switched off, if it is."""
        return None

    @abc.abstractmethod
    def target(self) -> Dict[str, Any]:
        """Where the run is sent, as JSON: another place has nothing of it yet."""

    @abc.abstractmethod
    def open(self, memory: Memory, is_running: bool) -> int:
        """Begins, or continues the service's run of `memory.id`, and saves that id. Returns the
        step up to which it has everything; -1: nothing."""

    @abc.abstractmethod
    def send(self, rows: Sequence[Row]) -> None:
        """Sends steps, in their order. Of one that was sent before, what came later."""

    @abc.abstractmethod
    def close(self, state: Optional[str]) -> None:
        """Returns once all is sent. `state`: how the training ended; nothing when another start
        continues it."""

    def say(self, text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} {self.run.path.name}: {text}", flush=True)


@contextlib.contextmanager
def _lock(path: Path, waits: bool) -> Iterator[None]:
    """Throws EvalError when another process has it."""
    deadline = time.monotonic() + (WAIT_FOR_LOCK_SECONDS if waits else 0)
    with open(path, "a+", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                    break  # this file system has no locks
            if time.monotonic() >= deadline:
                file.seek(0)
                raise EvalError(
                    f"{path}: process {file.read().strip() or '?'} sends this run already"
                )
            time.sleep(0.1)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def follow(backend_type: Type[Backend], path: str, given: Dict[str, Any], is_beside: bool) -> None:
    """Sends a run: what is there of one that has ended; of one that is training all that comes
    until it ends. Throws StepopError, and whatever the service throws."""
    run = Run(path)
    try:
        settings = _settings(run, backend_type.name)
    except StepopError:
        # The package brings all that reads a config.
        if importlib.util.find_spec(backend_type.package) is None:
            raise backend_type.not_installed() from None
        raise
    backend = backend_type(run, settings, given, is_beside)
    off = backend.off()
    if off is not None:
        backend.say(f"nothing is sent: {off}")
        return
    folder = run.path / backend.name
    folder.mkdir(exist_ok=True)
    process = run.process()
    with _lock(folder / "lock", waits=is_beside):
        memory = Memory(folder, backend.target())
        state = run.state_of(process)
        end = [state, process.started if process else ""]
        if state != "running" and memory.end == end and memory.kept(run.lines()).is_all:
            backend.say(f"{backend.title} has all of it")
            return
        after = backend.open(memory, state == "running")
        memory.keep(run.lines(), after)
        follower = Follower(run.train, after)
        while True:
            now = run.process() or process
            is_ours = _is_same_training(now, process)
            is_over = not is_ours or run.state_of(now) != "running"
            if follower.is_replaced() and not is_over:
                follower.close()
            follower.read()
            rows = follower.take(is_over)
            if rows:
                backend.send([_handled(row, backend.settings.get("handlers")) for row in rows])
                memory.add(rows)
            if not follower.has_read_all:
                continue
            if is_over:
                break
            time.sleep(POLL_SECONDS)
        follower.close()
        state = run.state_of(now)
        backend.close(state if is_ours else None)
        end = [state, now.started if now else ""]
        memory.save(memory.id or "", end if is_ours else None)


#: What `handlers` of an integration calls the files of a log, by their endings.
KINDS = {
    **dict.fromkeys(IMAGES + VIDEOS, "images"),
    **dict.fromkeys(SOUNDS, "audio"),
    **dict.fromkeys(TEXTS, "texts"),
}


def _handled(row: Row, handlers: Optional[List[str]]) -> Row:
    """The row with the kinds of logs that the config names; without any, the whole row."""
    if not handlers:
        return row
    files = {key: path for key, path in row.files.items() if KINDS.get(path.suffix) in handlers}
    return dataclasses.replace(row, values=row.values if "scalars" in handlers else {}, files=files)


def _is_same_training(a: Optional[Process], b: Optional[Process]) -> bool:
    """Whether it is the same start, whatever became of it."""
    if a is None or b is None:
        return a is b
    return a._replace(state="") == b._replace(state="")


def _settings(run: Run, name: str) -> Dict[str, Any]:
    integrations = run.config.get("integrations")
    found = integrations.get(name) if isinstance(integrations, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def main(backend_type: Type[Backend], arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m stepop.eval.{backend_type.name}",
        description=f"Sends runs of stepop to {backend_type.title}. One that is training is "
        "followed until it ends. What the config says of it may be set here.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="logs/<time>_<name>")
    for key, help in backend_type.options.items():
        parser.add_argument("--" + key.replace("_", "-"), help=help)
    parser.add_argument(
        "--beside", action="store_true", help="how a training starts it: at a low priority"
    )
    options = vars(parser.parse_args(arguments))
    paths, is_beside = options.pop("runs"), options.pop("beside")
    given = {key: value for key, value in options.items() if value is not None}
    if is_beside:
        with contextlib.suppress(OSError):
            os.nice(10)
    status = 0
    for path in paths:
        try:
            follow(backend_type, path, given, is_beside)
        except KeyboardInterrupt:
            return 130
        except Exception as error:  # of a service anything may come
            text = str(error).strip() or type(error).__name__
            print(f"{path}: {' '.join(text.split())}", file=sys.stderr, flush=True)
            status = 1
    return status
