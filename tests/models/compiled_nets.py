"""python compiled_nets.py FOLDER PACKAGE [NAME...]: adds compiled passes to FOLDER/NAME.pt2, of exported_nets.py.

NAME:bfloat16 writes FOLDER/NAME-bfloat16.pt2 beside it. Without names it exports the networks too, and compiles those that
the tests take.
"""

import os
import runpy
import sys

folder, package, *names = sys.argv[1:]
sys.path.insert(0, package)
from stepop.eval.export_compile import compile_file  # noqa: E402
from stepop.eval.export_target import Target  # noqa: E402

if not names:
    os.makedirs(folder, exist_ok=True)
    sys.argv[1:] = [folder, package]
    runpy.run_path(os.path.join(os.path.dirname(__file__), "exported_nets.py"))
    names = ["tied", "two", "drops", "blocks", "drops:bfloat16"]
for word in names:
    name, _, precision = word.partition(":")
    path = f"{folder}/{name}.pt2"
    print(compile_file(path, Target.read(precision or "float32"), f"{folder}/{name}-{precision}.pt2" if precision else path))
