import contextlib
import io
import shutil
import unittest

import numpy as np

import stepop
import stepop.eval
from tests import files

DIGITS = files.TREE / "configs" / "digits.yaml"
DATA = files.TREE / "configs" / "data"
PHOTOS = f"""
datasets:
  predict: {{class: Idx, images: {DATA}/digits-test-images.idx.gz, labels: {DATA}/digits-test-labels.idx.gz}}
"""


class ToolsTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        shutil.copytree(files.root(), self.folder, symlinks=True, dirs_exist_ok=True)
        stack = contextlib.ExitStack()
        stack.enter_context(files.inside(self.folder))
        self.addCleanup(stack.close)
        self.run_ = stepop.Run(files.RUN)

    def test_an_evaluation_is_that_of_the_checkpoint_and_shows_its_lines(self):
        logged = self.run_.evaluations.at(23).scalars["validation/eval_op/loss"]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            found = stepop.evaluate(self.run_, checkpoint=23)
        self.assertIn("step 23  validation/eval_op: loss", shown.getvalue())
        self.assertEqual((found.global_step, found.complete), (23, True))
        self.assertAlmostEqual(found.scalars["validation/eval_op/loss"], logged, 6)
        more = self.folder / "more.yaml"
        more.write_text("eval_hook: {eval_callbacks: {histogram: histogram}}\n")
        found = stepop.evaluate(
            files.RUN, {"batch_size": 50}, config=[DIGITS, more], name="new", quiet=True
        )
        self.assertEqual((found.global_step, found.config["batch_size"]), (46, 50))
        (image,) = self.run_.images["eval/new/histogram/histogram"]
        self.assertEqual(image.path.parents[1], found.path.parent.absolute())
        self.assertEqual(image.evaluation, found.path.parents[2].name)

    def test_callbacks_run_on_outputs_that_are_there(self):
        found = stepop.run_callbacks(
            self.run_, ["mine:accuracy"], {"mine/target": "class"}, quiet=True
        )
        self.assertEqual(found.global_step, 46)
        self.assertEqual(
            found.scalars["validation/eval_op/mine/accuracy"],
            found.scalars["validation/eval_op/accuracy/accuracy"],
        )

    def test_predictions_are_those_of_the_evaluation(self):
        (self.folder / "photos.yaml").write_text(PHOTOS)
        found = stepop.predict(self.run_, "photos.yaml", name="photos", quiet=True)
        logits = stepop.eval.open(self.run_.path, step=46).outputs["logits"][:]
        np.testing.assert_allclose(found.outputs["prediction"][:], logits, rtol=1e-4, atol=1e-4)

    def test_an_export_is_the_file_that_was_written(self):
        path = stepop.export(self.run_, "net.pt", checkpoint=23, network="model", quiet=True)
        self.assertEqual((str(path), path.is_file()), ("net.pt", True))
        path = stepop.export(files.RUN, quiet=True)
        self.assertEqual((str(path), path.is_file()), (f"{files.RUN}/model.pt", True))

    def test_settings_are_written_for_a_training(self):
        path = stepop.tune(DIGITS, {"seed": 2}, time="5s", output="mine.yaml", quiet=True)
        self.assertEqual((str(path), path.is_file()), ("mine.yaml", True))
        run = stepop.train([DIGITS, path], {"num_steps": 2}, quiet=True)
        self.assertEqual(run.step, 2)
        path = stepop.tune(DIGITS, flags=["--lr"], quiet=True)
        self.assertEqual(path.read_bytes()[1:4], b"PNG")

    def test_what_fails_is_thrown_with_the_lines_of_the_program(self):
        run = self.run_
        for told, call in (
            ("^-c: .*model-9.safetensors: no such checkpoint", lambda: stepop.evaluate(run, checkpoint=9)),
            ('^command line: unknown key "sed"', lambda: stepop.evaluate(run, {"sed": 1})),
            ("^changes: seed: a config cannot hold a set", lambda: stepop.evaluate(run, {"seed": set()})),
            ("^evaluate: no file was left, ", lambda: stepop.evaluate(run, flags=["--check"], quiet=True)),
            ("^-p: /nowhere: no such folder", lambda: stepop.evaluate("/nowhere")),
            ("^stepop predict: no data: ", lambda: stepop.predict(run)),
            ("^the callback accuracy failed: no true classes",
             lambda: stepop.run_callbacks(run, ["accuracy"], {"accuracy/target": "x"}, quiet=True)),
            ("^--network x: the run has no such network", lambda: stepop.export(run, network="x")),
            ("^no config given: ", lambda: stepop.tune([])),
        ):  # fmt: skip
            with self.subTest(told), self.assertRaisesRegex(stepop.StepopError, told):
                call()
