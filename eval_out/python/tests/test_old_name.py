import subprocess
import sys
import unittest

from tests import files

WARNING = "DeprecationWarning: stepop_eval is stepop.eval now, and goes with the next release: "


def run(*words):
    done = subprocess.run(
        [sys.executable, "-B", *map(str, words)], cwd=files.PACKAGE, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


class OldNameTest(unittest.TestCase):
    def test_the_earlier_name_has_the_same_modules_and_warns_once(self):
        for line in (
            "import stepop_eval; import stepop_eval.series as old",
            "from stepop_eval import series as old; from stepop_eval import open",
            "from stepop_eval.series import open_all; import stepop_eval.series as old",
        ):
            with self.subTest(line):
                check = "import stepop.eval.series as new; print(old is new, new.__spec__.name)"
                status, out, err = run("-c", f"{line}; {check}; import stepop_eval")
                self.assertEqual((status, out), (0, "True stepop.eval.series\n"), err)
                self.assertEqual(err.count("Warning"), 1, err)
                self.assertIn(f"<string>:1: {WARNING}import stepop.eval\n", err)

    def test_a_package_that_imports_it_does_not_warn_its_user(self):
        folder = files.scratch()
        (folder / "library.py").write_text("import stepop_eval\n")
        line = f"import sys; sys.path.append({str(folder)!r}); import library"
        self.assertEqual(run("-c", line), (0, "", ""))

    def test_its_programs_start(self):
        for name in ("", ".export", ".wandb"):
            status, out, err = run("-m", f"stepop_eval{name}", "--help")
            self.assertEqual(status, 0, err)
            self.assertIn(f"usage: python -m stepop.eval{name} ", out)
            self.assertEqual(err.count(f"stepop_eval{name} is stepop.eval{name} now"), 1, err)

    def test_the_run_that_it_had_is_the_one_run(self):
        line = "from stepop_eval.follow import Run; import stepop; print(Run is stepop.Run)"
        self.assertEqual(run("-c", line)[:2], (0, "True\n"))

    def test_what_neither_has_is_reported_under_the_name_that_was_given(self):
        status, _, err = run("-c", "import stepop_eval.nothing")
        self.assertEqual(status, 1)
        self.assertIn("ModuleNotFoundError: No module named 'stepop_eval.nothing'", err)


class EvalTest(unittest.TestCase):
    def test_it_is_there_without_an_import_and_loads_nothing_before(self):
        line = "import sys, stepop; print('numpy' in sys.modules, stepop.eval.open.__module__)"
        self.assertEqual(run("-c", line), (0, "False stepop.eval.evaluation\n", ""))
