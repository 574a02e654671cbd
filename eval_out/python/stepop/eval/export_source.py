"""What an export is made of: the module that a file or a package has, and examples of its inputs."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from stepop.eval.export_check import CannotExport
from stepop.objects import read_place, run_file

TYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")


def text_of(error: BaseException) -> str:
    """`TypeError: Net.__init__() got an unexpected keyword argument 'wdth'`"""
    return f"{type(error).__name__}: {str(error).strip() or 'without a text'}"


def line_of(error: BaseException, source: str) -> str:
    """The last line of that file in a traceback: ` in my_net.py, line 7`."""
    if isinstance(error, SyntaxError):
        return f" in {error.filename}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(source)]
    return f" in {source}, line {lines[-1]}" if lines else ""


def import_source(source: str) -> Any:
    """The module of `my_net.py`, or `torchvision.models`."""
    is_file = source.endswith(".py")
    if is_file and not os.path.isfile(source):
        raise CannotExport(f"no such file: {source}")
    try:
        if is_file:
            return run_file(source)
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        own = " (a file is given as my_net.py:Net)" if error.name == source.partition(".")[0] else ""
        raise CannotExport(
            f"no module {error.name}{own}; from a package: {sys.executable} -m pip install {error.name}") from error
    except Exception as error:
        raise CannotExport(f"{source} does not run: {text_of(error)}{line_of(error, source)}") from error


def find(place: str) -> Callable[..., Any]:
    """`my_net.py:Net`, or `torchvision.models:resnet18`."""
    read = read_place(place)
    if read is None:
        raise CannotExport(f'expected "my_net.py:Net" or "package.module:Name", found "{place}"')
    source, parts = read
    found = module = import_source(source)
    for part in parts:
        if not hasattr(found, part):
            names = [each for each, value in vars(module).items()
                     if not each.startswith("_") and callable(value) and value.__module__ == module.__name__]
            raise CannotExport(f"{source} has no {'.'.join(parts)}; it has: {', '.join(names)}")
        found = getattr(found, part)
    return found


def make(place: str, kwargs_text: str) -> Any:
    """The module that a class or a function makes; a module as it is."""
    import torch

    made = find(place)
    try:
        kwargs = json.loads(kwargs_text)
    except ValueError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise CannotExport(f"--kwargs: expected a map in JSON, {{\"width\": 8}}, found {kwargs_text}")
    if isinstance(made, torch.nn.Module):
        if kwargs:
            raise CannotExport(f"--kwargs: {place} is a module, which takes none: give its class, or a function")
        return made
    if not callable(made):
        raise CannotExport(f"{place} is of the type {type(made).__name__}: expected a class, a function or a module")
    try:
        net = made(**kwargs)
    except Exception as error:
        raise CannotExport(f"{place} cannot be made with --kwargs '{kwargs_text}': {text_of(error)}"
                           f"{line_of(error, place.rpartition(':')[0])}") from error
    if not isinstance(net, torch.nn.Module):
        raise CannotExport(f"{place} made something of the type {type(net).__name__}: expected a torch.nn.Module")
    return net


def example(text: str) -> tuple[str, Any]:
    """`image=4,3,224,224`, or with a type and a limit of its numbers: `tokens=4,16:int64:1000`."""
    import torch

    name, equals, rest = text.partition("=")
    sizes_text, *more = rest.split(":")
    kind = more[0] if more else "float32"
    try:
        sizes = [int(size) for size in sizes_text.split(",")]
        limit = int(more[1]) if len(more) > 1 else 2
    except ValueError:
        sizes = []
        limit = 0
    if not name or not equals or not sizes or min(sizes) < 1 or kind not in TYPES or len(more) > 2 or limit < 1:
        raise CannotExport(
            f"--example {text}: expected a name and sizes, image=4,3,224,224; with a type and a limit of the numbers: "
            f"tokens=4,16:int64:1000. Types: {', '.join(TYPES)}")
    dtype = getattr(torch, kind)
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return name, torch.randn(sizes, generator=generator).to(dtype)
    return name, torch.randint(0, limit, sizes, generator=generator).to(dtype)
