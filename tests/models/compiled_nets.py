"""python compiled_nets.py FOLDER PACKAGE NAME...: adds compiled passes to FOLDER/NAME.pt2, of exported_nets.py.

NAME:bfloat16 writes FOLDER/NAME-bfloat16.pt2 beside it.
"""

import sys

folder, package = sys.argv[1:3]
sys.path.insert(0, package)
from stepop.eval.export_compile import compile_file  # noqa: E402
from stepop.eval.export_target import Target  # noqa: E402

for word in sys.argv[3:]:
    name, _, precision = word.partition(":")
    path = f"{folder}/{name}.pt2"
    print(compile_file(path, Target.read(precision or "float32"), f"{folder}/{name}-{precision}.pt2" if precision else path))
