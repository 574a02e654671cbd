"""Follows the files of a run while it trains, and reads those of one that has ended.

Nothing is written and no lock of the run is taken: the training does not notice.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple

IMAGES = (".png", ".jpg", ".jpeg")
VIDEOS = (".gif", ".mp4", ".webm")
SOUNDS = (".wav",)
TEXTS = (".txt",)

METRICS = "metrics.jsonl"
# Folders of train/ that hold no logs.
NO_LOGS = ("checkpoints", "non_finite", "superseded", "tensorboard")
# A process of another host that did not renew its file for so long is dead, as stepop has it.
STALE_SECONDS = 60
# Pictures are made behind the loop. A step whose line is that old waits for no more of them.
LATE_SECONDS = 10
READ_BYTES = 4_000_000
NOT_FINITE = ("NaN", "Infinity", "-Infinity")


class Process(NamedTuple):
    """Who trains a run, or did last: its train/process.json."""

    state: str
    host: str
    pid: int
    started: str
    boot: str
    ticks: str
    #: Why it failed.
    error: str = ""


def read_process(train: Path) -> Optional[Process]:
    """Nothing where none trained. `train`: the folder of that name in a run."""
    for _ in range(3):
        try:
            values = json.loads((train / "process.json").read_bytes())
            needed = set(Process._fields) - {"pid", "error"}
            texts = {name: str(values[name]) for name in needed}
            return Process(pid=int(values["pid"]), error=str(values.get("error", "")), **texts)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            time.sleep(0.05)  # it is written in place
    return None


def lives(process: Process, train: Path) -> bool:
    """Whether it trains still, as stepop has it."""
    if process.host == socket.gethostname():
        ticks = _ticks(process.pid)
        return bool(ticks) and ticks == process.ticks and _boot() == process.boot
    try:
        age = time.time() - os.stat(train / "process.json").st_mtime
    except OSError:
        return False
    return age < STALE_SECONDS


def _ticks(pid: int) -> str:
    """When a process began, in clock ticks since the boot; empty for one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    values = stat[stat.rindex(")") + 2 :].split()
    return "" if values[0] in "ZX" else values[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Line(NamedTuple):
    """One line of metrics.jsonl; `check` is a checksum of its bytes."""

    step: int
    values: Dict[str, float]
    check: int


def parse_line(text: bytes) -> Optional[Line]:
    """Nothing for what is no line of metrics, as the program itself has it."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    step = values.pop("step", None) if isinstance(values, dict) else None
    if type(step) is not int or step < 0:
        return None
    for name, value in values.items():
        if isinstance(value, str) and value in NOT_FINITE:
            values[name] = float(value)
        elif type(value) not in (int, float):
            return None
    return Line(step, values, zlib.crc32(text))


class _Lines:
    """Reads whole lines of a file that grows; half a last line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Optional[BinaryIO] = None
        self._offset = 0
        self._rest = b""
        self.at_end = False

    def read(self) -> List[Line]:
        """What came since, at most some thousands; `at_end` says whether that is all."""
        if self._file is None:
            try:
                self._file = open(self._path, "rb")
            except FileNotFoundError:
                self.at_end = True
                return []
            self._file.seek(self._offset)
        block = self._file.read(READ_BYTES)
        self.at_end = len(block) < READ_BYTES
        self._offset += len(block)
        *texts, self._rest = (self._rest + block).split(b"\n")
        parsed = (parse_line(text) for text in texts if text)
        return [line for line in parsed if line is not None]

    def is_replaced(self) -> bool:
        """Whether its path leads to another file now: a resume cut it, or it was written again."""
        if self._file is None:
            return False
        try:
            named = os.stat(self._path)
        except OSError:
            return False
        ours = os.fstat(self._file.fileno())
        return (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino)

    def close(self) -> None:
        """Closes the file; another `read` continues in the one that is there then, which begins with
        the same lines."""
        if self._file is not None:
            self._file.close()
        self._file = None


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a metrics.jsonl as they are now."""
    reader = _Lines(path)
    try:
        while not reader.at_end:
            yield from reader.read()
    finally:
        reader.close()


class _Files:
    """Finds the files of logs, `<name>_<step>.png`, as they come. A folder is listed again when
    something was added to it."""

    def __init__(self, train: Path) -> None:
        self._train = str(train)
        self._listed: Dict[str, Tuple[int, List[str]]] = {}
        self._seen: Dict[str, None] = {}

    def read(self) -> List[Tuple[int, str, Path]]:
        """Those that are new: step, key, path."""
        found: List[Tuple[int, str, Path]] = []
        try:
            splits = [
                one.path for one in os.scandir(self._train) if one.is_dir(follow_symlinks=False)
            ]
        except OSError:
            return found
        for folder in splits:
            if os.path.basename(folder) not in NO_LOGS:
                self._look(folder, found)
        return found

    def _look(self, folder: str, found: List[Tuple[int, str, Path]]) -> None:
        try:
            changed = os.stat(folder).st_mtime_ns
            if folder not in self._listed or self._listed[folder][0] != changed:
                below = self._list(folder, found)
                # What comes within the clock's tick of this one leaves the time as it is.
                is_settled = time.time_ns() - changed > 2_000_000_000
                self._listed[folder] = (changed if is_settled else -1, below)
        except OSError:
            return  # it was moved away
        for each in self._listed[folder][1]:
            self._look(each, found)

    def _list(self, folder: str, found: List[Tuple[int, str, Path]]) -> List[str]:
        below = []
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
                continue
            stem, ending = os.path.splitext(entry.name)
            parts = re.fullmatch(r"(.+)_([0-9]+)", stem, re.S)
            if parts is None or ending not in IMAGES + VIDEOS + SOUNDS + TEXTS or entry.path in self._seen:
                continue
            if not entry.is_file(follow_symlinks=False):
                continue
            self._seen[entry.path] = None
            key = os.path.relpath(os.path.join(folder, parts[1]), self._train)
            found.append((int(parts[2]), key, Path(entry.path)))
        return below


@dataclass
class Row:
    """All that one training step logged."""

    step: int
    values: Dict[str, float] = field(default_factory=dict)
    checks: List[int] = field(default_factory=list)  # of its lines
    files: Dict[str, Path] = field(default_factory=dict)
    since: float = 0


class Follower:
    """Gives the steps of a run with all that they logged, each when it is complete, in their
    order; those up to `after` are left out. `train`: the folder of that name in the run."""

    def __init__(self, train: Path, after: int = -1) -> None:
        self._lines = _Lines(train / METRICS)
        self._files = _Files(train)
        self._checkpoints = train / "checkpoints"
        self._rows: Dict[int, Row] = {}
        self._after = after
        self._last = after
        # The files of these steps and of the ones before are there; from the next `read` on.
        self._safe = self._next_safe = -1

    def read(self) -> None:
        """Looks for what is new."""
        # A checkpoint comes after the files before it, so those are listed after it. They are made in
        # the order of their steps, but may be listed in another: what one says of earlier steps counts
        # when all were listed once more.
        self._safe = max(self._safe, self._next_safe, self._last_checkpoint())
        for line in self._lines.read():
            if line.step > self._after:
                row = self._row(line.step)
                row.values.update(line.values)
                row.checks.append(line.check)
        for step, key, path in self._files.read():
            self._next_safe = max(self._next_safe, step - 1)
            if step > self._after:
                # One that came too late for its step goes with the next.
                self._row(max(step, self._last)).files[key] = path

    def take(self, is_over: bool) -> List[Row]:
        """The steps that are complete: all of them when the training is over."""
        rows: List[Row] = []
        late = time.monotonic() - LATE_SECONDS
        steps = sorted(self._rows)
        if not self._lines.at_end:
            steps = steps[:-1]  # which may get more lines
        for step in steps:
            if not (is_over or step <= self._safe or self._rows[step].since < late):
                break
            rows.append(self._rows.pop(step))
            self._last = max(self._last, step)
        return rows

    @property
    def has_read_all(self) -> bool:
        return self._lines.at_end

    def is_replaced(self) -> bool:
        return self._lines.is_replaced()

    def close(self) -> None:
        """Closes the file of the metrics; another `read` continues in the one that is there then."""
        self._lines.close()

    def _row(self, step: int) -> Row:
        return self._rows.setdefault(step, Row(step, since=time.monotonic()))

    def _last_checkpoint(self) -> int:
        try:
            names = os.listdir(self._checkpoints)
        except OSError:
            return -1
        found = (re.fullmatch(r"model-([0-9]+)\.safetensors", name) for name in names)
        return max((int(one[1]) for one in found if one), default=-1)
