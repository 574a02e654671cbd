"""The earlier name of `stepop.eval`, for one more release: its modules are the same ones."""

import importlib
import importlib.abc
import importlib.util
import sys
import warnings


def _new(name):
    return name.replace("stepop_eval", "stepop.eval", 1)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        is_ours = name.startswith("stepop_eval.") and importlib.util.find_spec(_new(name))
        return importlib.util.spec_from_loader(name, self) if is_ours else None

    def exec_module(self, module):
        found = sys.modules[module.__name__] = importlib.import_module(_new(module.__name__))
        if module.__name__ == "stepop_eval.follow":
            found.Run = importlib.import_module("stepop.run").Run

    def get_code(self, name):  # python -m stepop_eval.export
        warnings.warn_explicit(_text(name), DeprecationWarning, f"python -m {name}", 1, "__main__")
        return importlib.util.find_spec(_new(name)).loader.get_code(_new(name))


def _text(name):
    return f"{name} is {_new(name)} now, and goes with the next release: import {_new(name)}"


warnings.warn(_text("stepop_eval"), DeprecationWarning, 2 - (__name__ == "__main__"))
if __name__ == "__main__":
    from stepop.eval.__main__ import main

    sys.exit(main())
sys.meta_path.insert(0, _Finder())
sys.modules[__name__] = importlib.import_module("stepop.eval")
