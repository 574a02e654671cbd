"""Serves the examples of a Python dataset to stepop.

    python -c SCRIPT

Standard input is a socket to stepop. This process builds the dataset and then forks one worker for
each socket that it gets; a worker shares the memory of the dataset with it, as a worker of PyTorch's
DataLoader does. The messages are described in `python_server.h` and `python_worker.h`.
"""

import sys

if sys.version_info < (3, 9):
    sys.exit("Python %d.%d is too old: datasets take Python 3.9 or newer" % sys.version_info[:2])
# Files of the user such as `random.py` stand in the current folder; this script means Python's.
sys.path[:] = [folder for folder in sys.path if folder]

import array
import ctypes
import difflib
import faulthandler
import importlib
import importlib.util
import json
import mmap
import operator
import os
import random
import select
import signal
import socket
import struct
import threading
import time
import traceback
import warnings

try:
    import numpy
except ImportError:
    sys.exit("numpy is missing: " + sys.executable + " -m pip install numpy")

ALIGNMENT = 64  # bytes, of each tensor in a buffer
QUICK_EXAMPLE = 200e-6  # seconds; see Reader.read
COLD_EXAMPLE = 20e-3  # seconds; what takes less may be quick when it is read once more
MEMORY_CHECKED_EVERY = 64  # batches
MUCH_MEMORY = 1 << 30  # bytes that a worker may grow by beside doubling
MOST_SAID = 2000  # characters of what an exception says
MOST_TEXT = 16000  # characters of an error with its traceback and causes
MOST_CAUSES = 10
MOST_FRAMES = 40  # of a traceback
MOST_DEPTH = 64  # of values in values; NumPy takes no more dimensions


class Refused(Exception):
    """What the user gave cannot be used; the text says why and what would help.

    `index` is the example in which it was found, or -1 for what concerns a whole batch.
    """

    def __init__(self, text, index=-1):
        super().__init__(text)
        self.index = index


# --- The socket


def receive(connection, size):
    """Exactly `size` bytes, or None when the other side has closed the socket."""
    parts = []
    while size > 0:
        part = connection.recv(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive_message(connection):
    head = receive(connection, 4)
    return None if head is None else receive(connection, struct.unpack("<I", head)[0])


def send_message(connection, message, files=()):
    head = struct.pack("<I", len(message))
    if files:
        rights = array.array("i", files)
        connection.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        connection.sendall(message)
    else:
        connection.sendall(head + message)


def shortened(text, most):
    return text if len(text) <= most else "%s ... (%d characters)" % (text[:most], len(text))


def said_by(error):
    """What the exception says. Its __str__ is the user's code, which may fail."""
    try:
        is_syntax = isinstance(error, SyntaxError) and error.filename
        return shortened(str(error.msg if is_syntax else error), MOST_SAID) or "(without a message)"
    except Exception as failure:
        return "(its message cannot be read: %s)" % type(failure).__name__


def text_of_one(error):
    """The exception in one line, then Python's traceback without the frames of this script."""
    if isinstance(error, Refused):
        return str(error)
    own = [frame for frame in traceback.extract_tb(error.__traceback__)
           if frame.filename != "<string>" and not frame.filename.startswith("<frozen ")]
    place = "%s:%s: " % (own[-1].filename, own[-1].lineno) if own else ""
    if isinstance(error, SyntaxError) and error.filename:
        place = "%s:%s: " % (error.filename, error.lineno)
    lines = ["%s%s: %s" % (place, type(error).__name__, said_by(error))]
    if own:
        lines.append("Traceback of Python (most recent call last):")
        first = own if len(own) <= MOST_FRAMES else own[:MOST_FRAMES // 2]
        last = own[len(first):][-MOST_FRAMES // 2:]
        lines += "".join(traceback.format_list(first)).rstrip("\n").split("\n")
        if last:
            lines.append("  ... %d frames are left out" % (len(own) - len(first) - len(last)))
            lines += "".join(traceback.format_list(last)).rstrip("\n").split("\n")
    return "\n".join(lines)


def text_of(error):
    """The exception and its causes, each with its traceback, up to a limit."""
    texts, known = [], set()
    while error is not None and id(error) not in known:
        if len(texts) > MOST_CAUSES:
            texts.append("further causes are left out")
            break
        known.add(id(error))
        text = text_of_one(error)
        texts.append("caused by " + text.replace("\n", "\n  ") if texts else text)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return shortened("\n".join(texts), MOST_TEXT)


# --- Processes that the dataset forks


class Copies:
    """A process that the dataset forks and that comes back has the sockets of the one that forked it: stepop would take
    its answers for those of the other."""

    def __init__(self):
        self.pid = os.getpid()

    def end(self, what):
        """Ends such a process."""
        if os.getpid() == self.pid:
            return
        try:
            print("a process %d that %s forked came back from the dataset and was ended here; end it with os._exit(0)" % (
                os.getpid(), what), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
