"""The package `stepop` of the wheel: finds the program, and starts it.

The program lies in this package. Its LibTorch is that of the package `torch`, which has to be
installed beside it.
"""

import os
import shutil
import sys

_here = os.path.dirname(os.path.abspath(__file__))

#: For CMake: -DCMAKE_PREFIX_PATH=$(python3 -c 'import stepop; print(stepop.cmake_prefix_path)')
cmake_prefix_path = _here

program = os.path.join(_here, "bin", "stepop")


def main():
    """The command `stepop`: this process becomes the program."""
    torch = os.path.join(os.path.dirname(_here), "torch")
    if not os.path.isdir(os.path.join(torch, "lib")):
        import importlib.metadata  # not in every start

        wanted = next(r for r in importlib.metadata.requires("stepop") if r.startswith("torch"))
        sys.exit(
            f"stepop: {torch} is missing, and LibTorch with it: install it where stepop is, by\n"
            f"{sys.executable} -m pip install --force-reinstall {wanted}"
        )
    # What it starts beside itself runs in this Python, which has the package stepop_eval.
    os.environ.setdefault("STEPOP_PYTHON", sys.executable)
    # The commands that the program suggests begin with the name that it was called by.
    typed = sys.argv[0]
    name = os.path.basename(typed)
    on_path = shutil.which(name)
    if on_path and os.path.abspath(on_path) == os.path.abspath(typed):
        typed = name
    os.execv(program, [typed] + sys.argv[1:])
