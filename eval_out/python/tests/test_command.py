import contextlib
import io
import sys
import unittest

from stepop.eval.__main__ import main
from tests import files


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue()


class CommandTest(unittest.TestCase):
    def test_it_says_what_is_in_a_file(self):
        status, out, err = run(files.rich())
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(
            out,
            f"{files.rich()}\n"
            "12 rows, complete\n"
            "step 70, test\n"
            "  outputs/bfloat16           float32 [12]\n"
            "  outputs/boxes              ragged int32 [12, *, 4]\n"
            "  outputs/complex            complex64 [12]\n"
            "  outputs/empty              float32 [12, 0]\n"
            "  outputs/encoder/deep/text  text [12]\n"
            "  outputs/encoder/mean       float64 [12, 2]\n"
            "  outputs/flag               bool [12]\n"
            "  outputs/half               float16 [12]\n"
            "  outputs/image              uint8 [12, 3, 4, 5]\n"
            "  outputs/logits             float32 [12, 4]\n"
            "  labels/center              float32 [12, 2]  0 to 1101, mean 550.5\n"
            "  labels/correct             bool [12]  0 to 1, mean 0.333333\n"
            "  labels/count               int64 [12]  -11 to 0, mean -5.5\n"
            "  labels/group/score         float64 [12]  0 to 1.375, mean 0.6875\n"
            "  labels/loss                float32 [12]  0 to 4, mean 1.90909, 1 NaN\n",
        )

    def test_of_a_run_it_takes_the_latest_or_a_step(self):
        for arguments, step in (([], 46), (["--step", 23], 23)):
            status, out, _ = run(files.run(), *arguments)
            self.assertEqual(status, 0)
            self.assertIn(f"\nstep {step}, validation, Classifier, LeNet\ncode: ", out)
            self.assertIn("  validation/eval_op/accuracy/accuracy  0.", out)

    def test_a_mistake_is_one_line_and_a_status(self):
        self.assertEqual(
            run("/nowhere/at/all"),
            (1, "", "stepop.eval: /nowhere/at/all: no such file or folder\n"),
        )

    def test_it_runs_as_a_module(self):
        out = files.call(sys.executable, "-m", "stepop.eval", files.rich(), cwd=files.PACKAGE)
        self.assertIn("12 rows, complete\n", out)
