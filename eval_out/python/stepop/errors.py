"""What goes wrong, in words, and how values are written for the program."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Mapping, Optional, Union

PathLike = Union[str, "os.PathLike[str]"]


class StepopError(Exception):
    """A run that cannot be found or read, or a program that failed; the message says what would
    help."""

    #: The folder of the run that failed, where it has one: `stepop.Run(error.run)` opens it.
    run: Optional[str] = None


def pandas_module(what: str) -> Any:
    """The package pandas. Throws StepopError, with the name `what` of its user, without it."""
    try:
        import pandas
    except ImportError:
        raise StepopError(
            f"{what} is a DataFrame and needs pandas, which is not installed: pip install pandas"
        ) from None
    return pandas


def yaml_text(value: Any, where: str) -> str:
    """A value of a config as YAML on one line. Throws StepopError for what a config cannot hold."""
    if hasattr(value, "tolist"):  # of numpy, of torch
        value = value.tolist()
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        # 1.0e-05: without a point, some readers of YAML take it for a text.
        return re.sub(r"^(-?[0-9]+)e", r"\1.0e", repr(value))
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        parts = [
            f"{yaml_text(str(key), where)}: {yaml_text(item, f'{where}/{key}')}"
            for key, item in value.items()
        ]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(yaml_text(item, where) for item in value) + "]"
    raise StepopError(
        f"{where}: a config cannot hold a {type(value).__name__}; it holds numbers, texts, "
        f"true and false, None, lists and dicts"
    )
