import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np

import stepop.eval
from tests import files
from tests.test_evaluation import message_of

ROWS = 320


class KilledTest(unittest.TestCase):
    def start(self, path):
        """A writer that has handed over ROWS of a million rows, and has the file open."""
        path.parent.mkdir(parents=True)
        writer = subprocess.Popen(
            [files.BUILD / "stepop_output_files", "unfinished", path], stdout=subprocess.PIPE
        )
        self.addCleanup(writer.stdout.close)
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        ready, _, _ = select.select([writer.stdout], [], [], 60)
        self.assertTrue(ready)
        self.assertEqual(os.read(writer.stdout.fileno(), 1), b"+")
        for _ in range(600):  # until what waited in its queue is written
            with contextlib.suppress(OSError), h5py.File(f"{path}.part", locking=False) as f:
                if f.attrs["rows"] == ROWS:
                    return writer
            time.sleep(0.1)
        raise AssertionError("the rows were not written")

    def check(self, e):
        n = ROWS
        self.assertEqual((e.rows, len(e), e.complete, e.outputs["x"].shape), (n, n, False, (n, 2)))
        numbers = np.arange(n)
        np.testing.assert_array_equal(e.index, numbers)
        np.testing.assert_array_equal(e.labels["loss"], numbers)
        np.testing.assert_array_equal(e.outputs["x"], np.stack([numbers, numbers], 1))
        np.testing.assert_array_equal(e.outputs["x"][-1], [n - 1, n - 1])
        with self.assertRaises(IndexError):
            e.outputs["x"][n]
        self.assertEqual(list(e.outputs["text"]), [f"row {i}" for i in range(n)])
        self.assertEqual(e.outputs["ragged"].lengths.tolist(), [i % 5 for i in range(n)])
        self.assertEqual(e.outputs["ragged"][n - 1].tolist(), [n - 1] * ((n - 1) % 5))
        self.assertEqual(e[n - 1]["outputs"]["text"], f"row {n - 1}")

    def test_rows_can_be_read_while_they_are_written_and_after_a_kill(self):
        run = files.scratch() / "logs" / "a"
        path = run / "eval" / "2026-11-21T10-00-00_a" / "5" / "outputs.h5"
        writer = self.start(path)
        with stepop.eval.open(run) as e:
            self.assertIsNone(writer.poll())
            self.check(e)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        with stepop.eval.open(run) as e, h5py.File(f"{path}.part", locking=False) as f:
            self.check(e)
            self.assertEqual((f.attrs["rows"], f["outputs/x"].shape[0]), (ROWS, 1_000_000))
            self.assertEqual(e.path, path.with_name("outputs.h5.part"))
            self.assertEqual((e.global_step, e.scalars), (5, {}))
            self.assertIn("not complete", repr(e))
        every = stepop.eval.open_all(run)
        self.assertEqual([e.rows for e in every], [ROWS])
        # A mean over some of the rows is no point of a curve.
        self.assertIn('no "labels/loss"', message_of(lambda: every.series("labels/loss")))
        with h5py.File(f"{path}.part", "r"), stepop.eval.open(f"{path}.part") as e:
            self.assertEqual(e.rows, ROWS)
        with stepop.eval.open(run):  # an evaluation that resumes the file finds no lock
            script = "import sys, h5py; h5py.File(sys.argv[1], 'r+').close()"
            files.call(sys.executable, "-c", script, f"{path}.part")

        # A whole file is taken before it, in the same folder and in one of an earlier start.
        whole = run / "eval" / "2026-11-20T10-00-00_a" / "3" / "outputs.h5"
        whole.parent.mkdir(parents=True)
        shutil.copy(files.rich(), whole)
        self.assertEqual(stepop.eval.open(run).path, whole)
        self.assertEqual(stepop.eval.open(run, step=5).path, path.with_name("outputs.h5.part"))
        shutil.copy(files.rich(), path)
        self.assertEqual(stepop.eval.open(run).path, path)
        self.assertEqual(stepop.eval.open(path.parent).path, path)
