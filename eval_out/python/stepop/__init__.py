"""stepop in Python: runs as objects and tables, trainings and evaluations started from here.

>>> import stepop
>>> run = stepop.Run("logs/2026-11-21T10-00-00_digits")
>>> run.state
'ended'
>>> run.metrics["validation/eval_op/loss"].dropna().index.to_list()
[23, 46]
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import StepopError
    from .files import Checkpoint, Image, Images, Start
    from .listing import runs
    from .run import Run
    from .sweeping import Sweep, sweep
    from .tools import evaluate, export, predict, run_callbacks, tune
    from .training import train

__all__ = [
    "Checkpoint",
    "Image",
    "Images",
    "Run",
    "Start",
    "StepopError",
    "Sweep",
    "cmake_prefix_path",
    "evaluate",
    "export",
    "predict",
    "program",
    "run_callbacks",
    "runs",
    "sweep",
    "train",
    "tune",
]

_here = os.path.dirname(os.path.abspath(__file__))

#: For CMake, with a wheel: -DCMAKE_PREFIX_PATH=$(python3 -c 'import stepop; print(stepop.cmake_prefix_path)')
cmake_prefix_path = _here

#: The program of a wheel. A tree has it elsewhere: see stepop.command.find_program.
program = os.path.join(_here, "bin", "stepop")

_modules = {
    "Checkpoint": "files",
    "Image": "files",
    "Images": "files",
    "Run": "run",
    "Start": "files",
    "StepopError": "errors",
    "Sweep": "sweeping",
    "evaluate": "tools",
    "export": "tools",
    "predict": "tools",
    "run_callbacks": "tools",
    "runs": "listing",
    "sweep": "sweeping",
    "train": "training",
    "tune": "tools",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        # Imported when it is asked for: the command `stepop` starts by this file, too.
        if name == "eval":
            import stepop.eval

            return stepop.eval
        if name not in _modules:
            raise AttributeError(f"the package stepop has no {name!r}; it has {', '.join(__all__)}")
        import importlib

        value = getattr(importlib.import_module("." + _modules[name], __name__), name)
        globals()[name] = value
        return value

    def __dir__():
        return [*globals(), *_modules]


def main() -> None:
    """The command `stepop` of the wheel: this process becomes the program."""
    import shutil

    torch = os.path.join(os.path.dirname(_here), "torch")
    if not os.path.isdir(os.path.join(torch, "lib")):
        import importlib.metadata

        wanted = next(
            r for r in importlib.metadata.requires("stepop") or [] if r.startswith("torch")
        )
        sys.exit(
            f"stepop: {torch} is missing, and LibTorch with it: install it where stepop is, by\n"
            f"{sys.executable} -m pip install --force-reinstall {wanted}"
        )
    # What it starts beside itself runs in this Python, which has this package.
    os.environ.setdefault("STEPOP_PYTHON", sys.executable)
    # The commands that the program suggests begin with the name that it was called by.
    typed = sys.argv[0]
    name = os.path.basename(typed)
    on_path = shutil.which(name)
    if on_path and os.path.abspath(on_path) == os.path.abspath(typed):
        typed = name
    os.execv(program, [typed] + sys.argv[1:])
