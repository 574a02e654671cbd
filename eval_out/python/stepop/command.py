"""The program `stepop`: where it is, and how it is called and started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar

from .errors import StepopError

POLL_SECONDS = 0.1
SIGNAL_SECONDS = 1.0
# So many lines of a failed program's output are shown.
ERROR_LINES = 20

Found = TypeVar("Found")


def find_program() -> str:
    """The program: that of the wheel, else $STEPOP, else that of the tree or the installation
    around this file, else `stepop` on the PATH. Throws StepopError when there is none."""
    package = Path(__file__).resolve().parent
    packed = package / "bin" / "stepop"
    if packed.is_file():
        return str(packed)
    given = os.environ.get("STEPOP")
    if given:
        found = shutil.which(given)
        if found is None:
            raise StepopError(
                f"STEPOP={given}: no such program; set it to the path of stepop, such as "
                f"/home/ada/stepop/build/stepop"
            )
        return os.path.abspath(found)
    around = package.parent.parent.parent  # the tree, or share/stepop of an installation
    is_tree = (around / "CMakeLists.txt").is_file()
    near = around / "build" / "stepop" if is_tree else around.parent.parent / "bin" / "stepop"
    if near.is_file() and (is_tree or around.parts[-2:] == ("share", "stepop")):
        return str(near)
    found = shutil.which("stepop")
    if found is None:
        raise StepopError(
            "the program stepop is neither beside this package nor on the PATH: set the variable "
            "STEPOP to its path, such as build/stepop of a built tree"
        )
    return os.path.abspath(found)


def _environment() -> Dict[str, str]:
    # What the program starts in Python has this package here.
    return {"STEPOP_PYTHON": sys.executable, **os.environ}


def call(*words: str) -> str:
    """What a command of the program prints. Throws StepopError with its error."""
    done = subprocess.run(
        ["stepop", *words],
        executable=find_program(),
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        raise StepopError(error_of(done.stderr, done.returncode))
    return done.stdout


def error_of(output: str, status: int) -> str:
    """The error at the end of an output: from the last line of `stepop: ` on, else its last
    lines."""
    lines = output.strip().splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("stepop: ")]
    told = "\n".join(lines[starts[-1] :][:ERROR_LINES] if starts else lines[-ERROR_LINES:])
    if status < 0:
        name = signal.Signals(-status).name
        help = ", as it happens when the memory is full" if name == "SIGKILL" else ""
        return f"stepop was killed by {name}{help}" + (f"; its last lines:\n{told}" if told else "")
    return told.replace("stepop: ", "", 1) or f"stepop ended with status {status} and no word"


class _AskedToEnd(BaseException):
    """A signal that would have ended this Python at once."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextlib.contextmanager
def _signals_thrown() -> Iterator[None]:
    """Throws _AskedToEnd at SIGTERM and SIGHUP, where nobody else handles or ignores them. Python
    lets only its main thread do that."""
    changed: List[signal.Signals] = []

    def throw(number: int, _frame: object) -> None:
        for one in changed:  # a second one ends this Python at once
            signal.signal(one, signal.SIG_DFL)
        raise _AskedToEnd(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    changed.append(number)
                    signal.signal(number, throw)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _content(file: BinaryIO, offset: int = 0) -> bytes:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), max(size - offset, 0), offset)


class Started:
    """The program as it runs beside this process; it does not end with this process. With
    `has_facts` it says by --json what it makes."""

    def __init__(
        self, words: Sequence[str], shown: Callable[[str], str] = str, has_facts: bool = True
    ) -> None:
        self._shown = shown  # what becomes of its lines before they are shown
        self._output = tempfile.TemporaryFile()
        self._facts = tempfile.TemporaryFile()
        self._printed = 0
        self._is_error = False  # whether its error was printed
        # A Ctrl-C of a terminal is this process's to handle.
        self.process = subprocess.Popen(
            ["stepop", *words, *(["--json"] if has_facts else [])],
            executable=find_program(),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._facts if has_facts else self._output,
            stderr=self._output,
            start_new_session=True,
        )
        _kept[:] = [one for one in _kept if one.process.poll() is None] + [self]

    def __del__(self) -> None:
        self._output.close()
        self._facts.close()

    def output(self, offset: int = 0) -> bytes:
        """What it has printed, from a byte on."""
        return _content(self._output, offset)

    def fact(self, name: str) -> Optional[str]:
        """What it said last of that name: `run`, `outputs`, `file`, `ended` or `error`."""
        lines = _content(self._facts).decode(errors="replace").split("\n")[:-1]
        said = [json.loads(line) for line in lines]
        return next((one[name] for one in reversed(said) if name in one), None)

    def wait_for_fact(self, name: str, is_quiet: bool) -> Optional[str]:
        """The same, once it is there; nothing when it ended without one. A Ctrl-C, SIGTERM or
        SIGHUP stops it politely."""
        return self._wait_for(lambda: self.fact(name), is_quiet)

    def wait_for_line(self, pattern: str, is_quiet: bool) -> Optional["re.Match[str]"]:
        """The first line that is as `pattern` says, of a program without facts; else the same."""
        text = lambda: self.output().decode(errors="replace")
        return self._wait_for(lambda: re.search(f"^{pattern}\n", text(), re.M), is_quiet)

    def _wait_for(self, find: Callable[[], Optional[Found]], is_quiet: bool) -> Optional[Found]:
        with self._stopped_by_interrupt(is_quiet):
            while True:
                has_ended = self.process.poll() is not None  # before the last look
                found = find()
                if found is not None or has_ended:
                    return found
                self._show(is_quiet)
                time.sleep(POLL_SECONDS)
        raise AssertionError  # never reached

    def wait(self, is_quiet: bool) -> int:
        """Shows its lines until it ends, and returns its status. A Ctrl-C, SIGTERM or SIGHUP stops
        it politely."""
        with self._stopped_by_interrupt(is_quiet):
            self.follow(is_quiet)
        return self.process.returncode

    def follow(self, is_quiet: bool) -> None:
        """Shows its lines until it ends. A Ctrl-C ends this alone."""
        while self.process.poll() is None:
            self._show(is_quiet)
            time.sleep(POLL_SECONDS)
        self._show(is_quiet)

    @contextlib.contextmanager
    def _stopped_by_interrupt(self, is_quiet: bool) -> Iterator[None]:
        try:
            with _signals_thrown():
                yield
        except _AskedToEnd as asked:
            # A scheduler may have sent its signal to the program, too, which a second one would end
            # at once. It has arrived by now, and after it SIGUSR1 does nothing.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(SIGNAL_SECONDS)
            self.process.send_signal(signal.SIGUSR1)
            self.follow(is_quiet)
            sys.stdout.flush()
            signal.raise_signal(asked.number)
            raise
        except KeyboardInterrupt:
            # It finishes its step and saves. A second Ctrl-C ends it at once.
            try:
                self.process.send_signal(signal.SIGINT)
                self.follow(is_quiet)
            except KeyboardInterrupt:
                self.process.send_signal(signal.SIGINT)
                self.follow(is_quiet)
            raise

    def _show(self, is_quiet: bool) -> None:
        """Prints the whole lines that are new, up to an error, which is thrown."""
        news = self.output(self._printed)
        news = news[: news.rfind(b"\n") + 1]
        self._printed += len(news)
        text, error, _ = f"\n{news.decode(errors='replace')}".partition("\nstepop: ")
        text = text[1:] + ("\n" if error and text[1:] else "")
        if text and not is_quiet and not self._is_error:
            print(self._shown(text), end="", flush=True)
        self._is_error = self._is_error or bool(error)

    def error(self) -> str:
        said = self.fact("error")
        text = said or error_of(self.output().decode(errors="replace"), self.process.returncode)
        return self._shown(text)


# Programs that run on when nobody holds them any more: Python would warn of each.
_kept: List[Started] = []
