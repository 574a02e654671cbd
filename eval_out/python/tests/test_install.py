import importlib.metadata
import re
import shutil
import sys
import unittest

from tests import files


class InstallTest(unittest.TestCase):
    def test_pip_installs_it_and_it_works_from_there(self):
        try:
            setuptools = int(importlib.metadata.version("setuptools").split(".")[0])
        except importlib.metadata.PackageNotFoundError:
            setuptools = 0
        if setuptools < 77:
            self.skipTest("setuptools >= 77 is not installed, and pip would have to download it")
        folder = files.scratch()
        # A copy, since pip leaves its build beside the sources.
        source = shutil.copytree(
            files.PACKAGE,
            folder / "source",
            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"),
        )
        files.call(
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check", "--target", folder / "site", source,
        )  # fmt: skip
        self.assertTrue((folder / "site" / "stepop" / "py.typed").is_file())
        self.assertTrue((folder / "site" / "stepop_eval.py").is_file())
        info = next((folder / "site").glob("stepop-*.dist-info"))
        licence = (info / "licenses" / "LICENSE").read_text()
        self.assertEqual(licence, (files.TREE / "LICENSE").read_text())
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import stepop.eval; "
            "print(stepop.eval.__file__); print(stepop.eval.open(sys.argv[2]).rows); "
            "import stepop; print(stepop.Run(sys.argv[3]).state)"
        )
        words = ("-c", script, folder / "site", files.rich(), files.run())
        out = files.call(sys.executable, *words, cwd=folder)
        self.assertEqual(out, f"{folder}/site/stepop/eval/__init__.py\n12\nended\n")

    @unittest.skipIf(sys.version_info < (3, 10), "Python does not tell its own modules' names")
    def test_it_imports_numpy_h5py_and_the_standard_library_only(self):
        allowed = set(sys.stdlib_module_names) | {"numpy", "h5py", "stepop"}
        optional = {"matplotlib", "mlflow", "pandas", "torch", "wandb", "yaml"}
        for path in files.PACKAGE.glob("stepop/**/*.py"):
            for indent, module in re.findall(r"^( *)(?:import|from) (\w+)", path.read_text(), re.M):
                # What may be missing is imported where it is used.
                self.assertIn(module, allowed | (optional if indent else set()), path)
