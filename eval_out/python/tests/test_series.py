import json
import math
import shutil
import unittest

import numpy as np

import stepop.eval
from tests import files
from tests.test_evaluation import message_of


class SeriesTest(unittest.TestCase):
    def test_evaluations_are_sorted_by_step(self):
        every = stepop.eval.open_all(files.run())
        self.assertEqual((len(every), every.steps.tolist()), (2, [23, 46]))
        self.assertEqual([e.global_step for e in every], [23, 46])
        self.assertEqual((every[-1].global_step, every.at(23).global_step), (46, 23))
        self.assertEqual(every[:1].steps.tolist(), [23])
        self.assertEqual(every[1:].scalars.steps.tolist(), [46])
        self.assertEqual(repr(every), f"<Evaluations {files.run()}: 2, of steps 23, 46>")
        with self.assertRaises(IndexError):
            every[2]
        self.assertEqual(
            message_of(lambda: every.at(7)),
            f"{files.run()}: no evaluation of step 7; there are those of steps 23, 46",
        )
        start = files.run() / "eval" / files.run().name
        for path in (files.run() / "eval", start):
            self.assertEqual(stepop.eval.open_all(path).steps.tolist(), [23, 46])

    def test_a_label_and_a_scalar_over_steps_agree(self):
        every = stepop.eval.open_all(files.run())
        label = every.series("labels/loss")
        scalar = every.series("validation/eval_op/loss")
        self.assertEqual((label.steps.tolist(), scalar.steps.tolist()), ([23, 46], [23, 46]))
        np.testing.assert_allclose(label.values, scalar.values, rtol=1e-12)
        self.assertEqual(
            every.series("labels/loss", reduce=np.max).values.tolist(),
            [float(e.labels["loss"].max()) for e in every],
        )
        accuracy = "validation/eval_op/accuracy/accuracy"
        logged = {}
        for line in (files.run() / "train" / "metrics.jsonl").read_text().splitlines():
            event = json.loads(line)
            if accuracy in event:
                logged[event["step"]] = event[accuracy]
        steps, values = every.series(accuracy)
        self.assertEqual(dict(zip(steps.tolist(), values.tolist())), logged)

    def test_scalars_are_a_table(self):
        table = stepop.eval.open_all(files.run()).scalars
        self.assertEqual(
            sorted(table), ["validation/eval_op/accuracy/accuracy", "validation/eval_op/loss"]
        )
        self.assertEqual(table["validation/eval_op/loss"].shape, (2,))
        self.assertIn("did you mean", message_of(lambda: table["validation/eval_op/los"], KeyError))
        try:
            import pandas  # noqa: F401
        except ImportError:
            return
        frame = table.to_pandas()
        self.assertEqual((frame.index.name, frame.index.tolist()), ("step", [23, 46]))

    def test_what_no_evaluation_has_is_told_with_the_nearest(self):
        every = stepop.eval.open_all(files.run())
        names = "labels/loss, validation/eval_op/accuracy/accuracy, validation/eval_op/loss"
        self.assertEqual(
            message_of(lambda: every.series("labels/los"), KeyError),
            f'{files.run()}: no "labels/los"; did you mean "labels/loss"? there are: {names}',
        )
        self.assertIn(f"there are: {names}", message_of(lambda: every.series("loss")))

    def test_evaluations_with_a_name_are_others(self):
        start = files.scratch() / "logs" / "named" / "eval" / "2026-11-21T10-00-00_named"
        for step in ("23", "46"):
            shutil.copytree(files.evaluation(int(step)), start / step)
        shutil.copytree(files.evaluation(46), start / "46" / "test")
        (start / "46" / "callback").mkdir()
        run = start.parent.parent
        every = stepop.eval.open_all(run)
        self.assertEqual((every.steps.tolist(), every.names), ([23, 46], ["test"]))
        self.assertEqual([e.path for e in every.named("test")], [start / "46/test/outputs.h5"])
        self.assertEqual(every[-1].path, start / "46/outputs.h5")
        self.assertEqual(stepop.eval.open(run).path, start / "46/outputs.h5")
        self.assertEqual(
            message_of(lambda: every.named("tset")),
            f"{run}: no evaluation with the name 'tset'; there are: test",
        )

    def test_gaps_cleaned_up_outputs_and_a_step_that_was_evaluated_twice(self):
        run = files.scratch() / "logs" / "a"
        first, second = (
            run / "eval" / "2026-11-21T10-00-00_a",
            run / "eval" / "2026-11-22T10-00-00_a",
        )
        for step in ("23", "46"):
            shutil.copytree(files.evaluation(int(step)), first / step)
        shutil.copytree(files.evaluation(23), second / "23")
        (second / "23" / "scalars.json").write_text('{"a": 1.5, "b": "NaN"}')
        (first / "9").mkdir()  # its outputs were cleaned up
        (first / "9" / "scalars.json").write_text('{"a": "-Infinity"}')
        (first / "100").mkdir()  # was going to begin
        every = stepop.eval.open_all(run)
        self.assertEqual(
            [e.path for e in every], [second / "23/outputs.h5", first / "46/outputs.h5"]
        )
        self.assertEqual(every.scalars.steps.tolist(), [9, 23, 46])
        np.testing.assert_array_equal(every.scalars["a"], [-math.inf, 1.5, math.nan])
        np.testing.assert_array_equal(every.series("b"), ([23], [math.nan]))
        # The last start counts, not the largest step.
        self.assertEqual(stepop.eval.open(run).path, second / "23/outputs.h5")
        self.assertEqual(stepop.eval.open(run, step=46).path, first / "46/outputs.h5")
        (second / "23" / "scalars.json").write_text('{"a": ')
        self.assertIn(f"cannot read {second}/23/scalars.json: ", message_of(lambda: every.scalars))
