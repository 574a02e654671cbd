import os
import shutil
import unittest
import unittest.mock
from pathlib import Path

import h5py
import numpy as np

import stepop.eval
from stepop.eval import locate
from tests import files
from tests.test_evaluation import message_of


class ErrorsTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        self.path = self.folder / "outputs.h5"

    def message(self, path=None):
        return message_of(lambda: stepop.eval.open(path or self.path))

    def changed(self, change):
        """What opening a file says after `change` was made to it."""
        shutil.copy(files.rich(), self.path)
        with h5py.File(self.path, "r+") as f:
            change(f)
        return self.message()

    def test_what_is_not_there(self):
        (self.folder / "2026-11-21_digits").mkdir()
        self.assertEqual(
            self.message(self.folder / "2026-11-21_digit"),
            f'{self.folder}/2026-11-21_digit: no such file or folder; did you mean "2026-11-21_digits"?',
        )
        self.assertEqual(self.message("/nowhere/at/all"), "/nowhere/at/all: no such file or folder")
        shutil.copy(files.rich(), f"{self.path}.part")
        self.assertEqual(
            self.message(),
            f"{self.path}: no such file; {self.path}.part holds the rows of an unfinished evaluation",
        )

    def test_a_folder_without_an_evaluation(self):
        logs = self.folder / "logs"
        run = logs / "2026-11-21T10-00-00_digits"
        (run / "train").mkdir(parents=True)
        none_yet = f"{run}: this run has no evaluation yet; there is one after each epoch, or with `stepop -p {run}`"
        self.assertEqual(self.message(run), none_yet)
        (run / "eval" / run.name / "23").mkdir(parents=True)
        self.assertEqual(self.message(run), none_yet)
        self.assertEqual(message_of(lambda: stepop.eval.open_all(run)), none_yet)
        self.assertEqual(
            self.message(logs), f"{logs}: a folder of runs; open one of them, such as {run}"
        )
        self.assertEqual(
            self.message(self.folder),
            f"{self.folder}: neither a run nor an evaluation: it has no folder eval and no outputs.h5",
        )
        (run / "eval" / run.name / "23" / "scalars.json").write_text("{}")
        self.assertEqual(
            self.message(run),
            f"{run}: its evaluations left no outputs: eval_hook/clean_after_callbacks removes them; "
            "their scalars are in open_all(...).scalars",
        )

    def test_a_part_that_becomes_the_whole_file_between_two_looks(self):
        folder = files.scratch()
        looks = []

        def is_file(path):
            looks.append(path.name)
            return len(looks) == 3  # there was only the .part, then only the file

        with unittest.mock.patch.object(Path, "is_file", is_file):
            self.assertEqual(locate.outputs_in(folder), folder / "outputs.h5")
        self.assertEqual(looks, ["outputs.h5", "outputs.h5.part", "outputs.h5"])

    def test_a_step_that_was_not_evaluated(self):
        self.assertEqual(
            message_of(lambda: stepop.eval.open(files.run(), step=24)),
            f"{files.run()}: no evaluation of step 24; there are those of steps 23, 46",
        )
        self.assertEqual(
            message_of(lambda: stepop.eval.open(files.rich(), step=24)),
            f"{files.rich()} is one evaluation; a step is chosen from those of a run",
        )
        self.assertEqual(
            message_of(lambda: stepop.eval.open_all(files.rich())),
            f"{files.rich()} is one evaluation, which open() opens; open_all() takes a run",
        )

    def test_what_is_no_file_of_evaluation_outputs(self):
        self.path.write_text("no HDF5" * 1000)
        self.assertEqual(self.message(), f"cannot read {self.path}: it is not an HDF5 file")
        self.path.write_text("")
        self.assertEqual(self.message(), f"cannot read {self.path}: it is empty")
        self.path.unlink()
        with h5py.File(self.path, "w") as f:
            f["x"] = 1
        no = f"{self.path}: not a file of evaluation outputs: it has no "
        self.assertEqual(self.message(), no + 'attribute "format_version"')
        self.assertEqual(
            self.changed(lambda f: f.attrs.__delitem__("rows")), no + 'attribute "rows"'
        )
        self.assertEqual(
            self.changed(lambda f: f.attrs.__setitem__("rows", -1)), no + 'attribute "rows"'
        )
        self.assertEqual(
            self.changed(lambda f: f.attrs.__setitem__("complete", 1)), no + 'attribute "complete"'
        )
        self.assertEqual(self.changed(lambda f: f.__delitem__("index")), no + '"index"')

    def test_a_newer_format(self):
        self.assertEqual(
            self.changed(lambda f: f.attrs.__setitem__("format_version", 2)),
            f"{self.path}: format 2 is newer than this package, which reads format 1; install the "
            "version of stepop that wrote it",
        )

    def test_arrays_that_are_not_as_long_as_the_file_says(self):
        def shorten(f):
            del f["outputs/logits"]
            f["outputs/logits"] = np.zeros((11, 4))

        self.assertEqual(
            self.changed(shorten),
            f"{self.path}: outputs/logits has 11 rows, the file says that 12 were written",
        )

        def single(f):
            f["labels/one"] = 1.0

        self.assertEqual(
            self.changed(single), f"{self.path}: labels/one is a single value, not an array of rows"
        )

    def test_ragged_arrays_that_are_damaged(self):
        shutil.copy(files.rich(), self.path)
        with h5py.File(self.path, "r+") as f:
            f["outputs/boxes/offsets"][3] = 10**12
        with stepop.eval.open(self.path) as e:
            text = f"{self.path}: outputs/boxes: the file is damaged: its offsets decrease, or point outside of values"
            self.assertEqual(message_of(lambda: e.outputs["boxes"][:]), text)
            self.assertEqual(e.outputs["boxes"][8].shape, (2, 4))

    def test_a_file_that_is_cut_short_is_told_at_any_length(self):
        whole = files.rich().read_bytes()
        for length in list(range(1, 2000, 97)) + list(range(2000, len(whole), 1009)):
            self.path.write_bytes(whole[:length])
            with self.subTest(length):
                text = self.message()
                self.assertTrue(text.startswith(f"cannot read {self.path}: "), text)
                if length > 96:
                    self.assertIn("the file is cut short", text)

    def test_bytes_that_changed_are_read_or_told(self):
        whole = files.rich().read_bytes()
        generator = np.random.default_rng(3)
        for _ in range(300):
            changed = bytearray(whole)
            for place in generator.integers(0, len(whole), 3):
                changed[place] = int(generator.integers(0, 256))
            self.path.write_bytes(changed)
            try:
                with stepop.eval.open(self.path) as e:
                    for array in (*e.outputs.values(), *e.labels.arrays().values()):
                        array[:3]
            except stepop.eval.EvalError:
                pass

    def test_a_name_that_is_no_text(self):
        shutil.copy(files.rich(), self.path)
        with h5py.File(self.path, "r+") as f:
            h5py.h5g.create(f["outputs"].id, b"\xff")
        self.assertEqual(
            self.message(),
            f"{self.path}: outputs has a name that is not UTF-8 text, b'\\xff': the file is damaged, "
            "or another program wrote it",
        )

    def test_a_file_that_may_not_be_read(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        shutil.copy(files.rich(), self.path)
        self.path.chmod(0)
        self.assertEqual(self.message(), f"cannot read {self.path}: Permission denied")
