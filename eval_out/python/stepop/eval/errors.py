"""What goes wrong, in words: where, what was found, what would help."""

from __future__ import annotations

import contextlib
import difflib
from pathlib import Path
from typing import Iterable, Iterator

from ..errors import PathLike, StepopError

__all__ = ["EvalError", "PathLike", "UnknownKeyError", "nearest", "reading", "unknown_key"]


class EvalError(StepopError):
    """An evaluation that cannot be found, opened or read; the message says what would help."""


class UnknownKeyError(EvalError, KeyError):
    """A key that an evaluation does not have; the message names the nearest and all others."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean "logits"?`, or nothing when no name is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def unknown_key(where: str, key: object, known: Iterable[str]) -> UnknownKeyError:
    names = sorted(known)
    inside = [name for name in names if name.startswith(f"{key}/")]
    if inside:
        return UnknownKeyError(f'{where}: "{key}" is a group; there are: {", ".join(inside)}')
    help = nearest(str(key), names) or ";"
    return UnknownKeyError(f'{where}: no "{key}"{help} there are: {", ".join(names) or "none"}')


@contextlib.contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turns what h5py throws for a damaged file into an EvalError."""
    try:
        yield
    except EvalError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        reason = error.args[0] if error.args else error
        raise EvalError(f"{path}: cannot read {what}: {reason}") from error
