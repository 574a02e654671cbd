"""The place of an object of Python, `my_net.py:Net` or `package.module:Name`.

The script with which the program reads datasets has a reader of its own, find_object in
runtime/data/python/script/building.py: it runs in the user's Python, which may lack this package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import List, Optional, Tuple


def read_place(place: str) -> Optional[Tuple[str, List[str]]]:
    """The file or module, and the names that lead from it to the object; nothing for another text.
    `package.module.Name` is taken, too."""
    source, colon, name = place.rpartition(":")
    if not colon and not place.endswith(".py"):
        source, _, name = place.rpartition(".")
    return (source, name.split(".")) if source and name else None


def run_file(path: str) -> ModuleType:
    """The module of a file, which finds the files beside it. Throws what the file throws."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
