import os
import unittest
from unittest import mock

from stepop import Run, StepopError
from stepop.eval import follow
from stepop.eval.follow import Follower, parse_line
from tests import files
from tests.runs import MadeRun


def steps(rows):
    return [row.step for row in rows]


class FollowTest(unittest.TestCase):
    def follower(self, made, after=-1):
        follower = Follower(made.run.train, after)
        self.addCleanup(follower.close)
        return follower

    def test_a_line_of_metrics_is_what_the_program_takes_for_one(self):
        line = parse_line(b'{"step":3,"a/b":1,"n":"NaN","i":"-Infinity"}')
        self.assertEqual((line.step, line.values["a/b"], line.values["i"]), (3, 1, -float("inf")))
        self.assertNotEqual(line.values["n"], line.values["n"])
        for text in (b"", b"{", b"[1]", b'{"a":1}', b'{"step":-1}', b'{"step":1.5}', b"\xff",
                     b'{"step":1,"a":"text"}', b'{"step":1,"a":true}'):  # fmt: skip
            self.assertIsNone(parse_line(text), text)

    def test_all_lines_and_files_of_a_step_are_one_row(self):
        made = MadeRun()
        made.log(1, a=1)
        made.log(2, a=2)
        made.log(2, b="NaN")
        image = made.file("train/log_op/more/x", 2)
        text = made.file("train/log_op/t", 2, ending=".txt")
        made.file("train/log_op/table", 2, ending=".csv")
        made.file("superseded/log_op/old", 2)
        follower = self.follower(made)
        follower.read()
        first, second = follower.take(is_over=True)
        self.assertEqual((first.step, first.values["a"], first.files), (1, 1, {}))
        self.assertEqual(second.values["a"], 2)
        self.assertIn("b", second.values)
        self.assertEqual(second.files, {"train/log_op/more/x": image, "train/log_op/t": text})

    def test_half_a_line_waits_and_a_broken_one_is_left_out(self):
        made = MadeRun()
        made.metrics.write_text('{"step":1,"a":1}\nnonsense\n{"step":2,"a"')
        follower = self.follower(made)
        follower.read()
        self.assertEqual(steps(follower.take(is_over=True)), [1])
        with open(made.metrics, "a") as file:
            file.write(":7}\n")
        follower.read()
        (row,) = follower.take(is_over=True)
        self.assertEqual((row.step, row.values), (2, {"a": 7}))

    def test_a_step_waits_for_its_pictures(self):
        made = MadeRun()
        made.log(1, a=1)
        made.log(2, a=2)
        follower = self.follower(made)
        follower.read()
        self.assertEqual(follower.take(is_over=False), [])
        first = made.file("train/log_op/x", 1)
        second = made.file("train/log_op/x", 2)
        # Pictures come in the order of their steps: that of step 2 says that 1 has all of them.
        follower.read()
        self.assertEqual(follower.take(is_over=False), [])
        follower.read()
        (row,) = follower.take(is_over=False)
        self.assertEqual((row.step, list(row.files.values())), (1, [first]))
        # And so does a checkpoint.
        made.checkpoint(2)
        follower.read()
        (row,) = follower.take(is_over=False)
        self.assertEqual((row.step, list(row.files.values())), (2, [second]))

    def test_a_step_without_pictures_waits_ten_seconds_and_late_ones_go_with_the_next(self):
        made = MadeRun()
        made.log(1, a=1)
        follower = self.follower(made)
        follower.read()
        with mock.patch.object(follow, "LATE_SECONDS", -1):
            self.assertEqual(steps(follower.take(is_over=False)), [1])
        late = made.file("train/log_op/x", 1)
        made.log(2, a=2)
        follower.read()
        rows = follower.take(is_over=True)
        self.assertEqual([path for row in rows for path in row.files.values()], [late])

    def test_what_was_sent_before_is_left_out(self):
        made = MadeRun()
        for step in (1, 2, 3):
            made.log(step, a=step)
            made.file("train/log_op/x", step)
        follower = self.follower(made, after=2)
        follower.read()
        (row,) = follower.take(is_over=True)
        self.assertEqual((row.step, len(row.files)), (3, 1))

    def test_a_file_that_was_written_again_is_read_on(self):
        made = MadeRun()
        made.log(1, a=1)
        follower = self.follower(made)
        follower.read()
        self.assertFalse(follower.is_replaced())
        made.cut(1)
        made.log(2, a=2)
        self.assertTrue(follower.is_replaced())
        follower.close()
        follower.read()
        self.assertEqual(steps(follower.take(is_over=True)), [1, 2])

    def test_many_lines_are_read_in_blocks(self):
        made = MadeRun()
        for step in range(200):
            made.log(step, a=step)
        with mock.patch.object(follow, "READ_BYTES", 1000):
            self.assertEqual([line.step for line in made.run.lines()], list(range(200)))

    def test_a_process_that_is_gone_was_killed(self):
        made = MadeRun()
        states = []
        for state, pid in (("running", None), ("running", 2**22 + 1), ("failed", None)):
            made.state(state, pid=pid)
            states.append(made.run.state_of(made.run.process()))
        os.remove(made.path / "train" / "process.json")
        states.append(made.run.state_of(made.run.process()))
        self.assertEqual(states, ["running", "killed", "failed", "unknown"])

    def test_what_is_no_run_is_said(self):
        with self.assertRaisesRegex(StepopError, "/nowhere: no such folder$"):
            Run("/nowhere")
        with self.assertRaisesRegex(StepopError, ": no run of a training: it has no folder train$"):
            Run(files.scratch())

    def test_the_sweep_of_a_run_is_the_folder_above(self):
        self.assertIsNone(MadeRun().run.sweep)
        made = MadeRun()
        folder = made.path.parent / "sweeps" / "lr"
        folder.mkdir(parents=True)
        self.assertEqual(Run(made.path.rename(folder / "run_0001")).sweep, "lr")
