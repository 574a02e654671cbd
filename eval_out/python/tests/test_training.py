import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import stepop
from stepop import command
from tests import files
from tests.runs import numbers

DIGITS = files.TREE / "configs" / "digits.yaml"

# Trains until somebody stops it, some thousand steps a second.
ENDLESS = """
iterator: Classifier
model: {class: MLP, inputs: 16, hidden: [8]}
datasets:
  train: {class: Synthetic, size: 100000, shape: [1, 4, 4], classes: 3}
batch_size: 8
optimizer: {class: Adam, lr: 0.01}
log_freq: 100
num_steps: 1000000000
checkpoints: {keep_last: 2}
n_data_processes: 0
num_threads: 1
"""

INTERRUPTED = """
import stepop
try:
    stepop.train("endless.yaml")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class TrainingTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        (self.folder / "endless.yaml").write_text(ENDLESS)
        stack = contextlib.ExitStack()
        stack.enter_context(files.inside(self.folder))
        self.addCleanup(stack.close)

    def endless(self):
        run = stepop.train("endless.yaml", wait=False)
        self.addCleanup(run.stop)
        return run

    def test_a_training_is_that_of_the_command_and_shows_its_lines(self):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            run = stepop.train(DIGITS, {"num_epochs": 2}, name="a")
        self.assertEqual((run.state, run.step, run.name[-2:]), ("ended", 46, "_a"))
        self.assertIn("ended: all 46 steps are done\n", shown.getvalue())
        timing = ("time", "runtime/")
        here, there = (
            {
                step: {k: v for k, v in row.items() if not k.startswith(timing)}
                for step, row in rows.items()
            }
            for rows in (numbers(run.path), numbers(files.run()))
        )
        self.assertEqual(here, there)
        again = stepop.train(run, {"num_epochs": 3}, quiet=True)
        self.assertEqual((again.path, again.step), (run.path, 69))
        self.assertEqual([start.kind for start in again.starts], ["new", "resume"])

    def test_a_training_beside_is_followed_changed_stopped_and_resumed(self):
        run = self.endless()
        self.assertEqual((run.state, run.name[-4:]), ("running", "_run"))
        while run.step < 100:
            self.assertEqual(run.state, "running")
            time.sleep(0.05)
        self.assertLess(run.metrics["train/log_op/loss"].iloc[-1], 5)
        run.change({"optimizer/lr": 0.002, "seed": 1})
        self.assertEqual(run.config["optimizer"], {"class": "Adam", "lr": 0.002})
        self.assertEqual(run.starts[-1].kind, "change")
        with self.assertRaisesRegex(
            stepop.StepopError,
            r"refused: .*change.yaml:1: num_steps: expected a whole number, found \"fast\"$",
        ):
            run.change({"num_steps": "fast"})
        with self.assertRaisesRegex(stepop.StepopError, r'than the network "model":\n *\S.*\n *\S'):
            run.change({"model/classes": 11})
        self.assertEqual(run.state, "running")
        run.stop()
        self.assertEqual(run.state, "stopped")
        self.assertEqual(run.wait(), run)
        last = run.checkpoints[-1].step
        self.assertGreaterEqual(last, run.step)
        run.stop()  # it does nothing
        again = stepop.train(run.path, {"num_steps": last + 10}, quiet=True)
        self.assertEqual((again.state, again.checkpoints[-1].step), ("ended", last + 10))

    def test_who_waits_sees_its_lines_if_wanted(self):
        for quiet in (True, False):
            shown = io.StringIO()
            run = stepop.train("endless.yaml", {"num_steps": 2000}, wait=False)
            with contextlib.redirect_stdout(shown):
                run.wait(quiet)
            self.assertEqual("ended: all 2,000 steps are done\n" in shown.getvalue(), not quiet)

    def test_a_training_ends_not_with_the_python_that_began_it(self):
        script = "import stepop; print(stepop.train('endless.yaml', wait=False).path)"
        run = stepop.Run(self.python(script).strip())
        self.addCleanup(run.stop)
        self.assertEqual(run.state, "running")

    def python(self, script):
        return files.call(sys.executable, "-c", script, env=self.environment())

    def environment(self):
        return {**os.environ, "PYTHONPATH": str(files.PACKAGE), **files.BYTECODE_IN_BUILD}

    def test_an_interrupt_stops_the_training_politely(self):
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED],
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for line in process.stdout:
                if "step 127/" in line:
                    process.send_signal(signal.SIGINT)
                    break
            rest = process.stdout.read()
        self.assertEqual(process.returncode, 0)
        self.assertRegex(rest, "ended: SIGINT arrived\nsaved; resume with: .*\ninterrupted\n$")
        (path,) = (self.folder / "logs").iterdir()
        run = stepop.Run(path)
        self.assertEqual((run.state, len(run.checkpoints)), ("stopped", 1))

    def test_a_signal_that_ends_python_stops_the_training_politely(self):
        cases = [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGTERM, True)]
        for number, also_training in cases:
            with self.subTest(number=number, also_training=also_training):
                with subprocess.Popen(
                    [sys.executable, "-c", INTERRUPTED],
                    env=self.environment(),
                    stdout=subprocess.PIPE,
                    text=True,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
                ) as process:
                    run = None
                    for line in process.stdout:
                        if line.startswith("run  "):
                            run = stepop.Run(line.split(None, 1)[1].strip())
                        if "step 127/" in line:
                            break
                    self.addCleanup(run.stop)
                    trainer = run.process().pid
                    process.send_signal(number)
                    if also_training:  # as a scheduler does
                        os.kill(trainer, number)
                    rest = process.stdout.read()
                self.assertEqual(process.returncode, -number)
                arrived = "SIGTERM" if also_training else "SIGUSR1"
                self.assertRegex(rest, f"ended: {arrived} arrived\nsaved; resume with: .*\n$")
                self.assertEqual((run.state, len(run.checkpoints)), ("stopped", 1))

    def test_what_fails_is_thrown_with_the_lines_of_the_program(self):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), self.assertRaises(stepop.StepopError) as caught:
            stepop.train(DIGITS, {"optimizer/lrr": 1e-3})
        self.assertEqual(
            str(caught.exception),
            'command line: unknown key "optimizer/lrr": did you mean "optimizer/lr"?\n'
            "(--allow-unknown makes this a warning)",
        )
        self.assertEqual((shown.getvalue(), caught.exception.run), ("", None))
        with self.assertRaisesRegex(
            stepop.StepopError, "^cannot read x.yaml: No such file or directory$"
        ):
            stepop.train("x.yaml", wait=False)
        with self.assertRaisesRegex(
            stepop.StepopError, "^changes: seed: a config cannot hold a set; "
        ):
            stepop.train(DIGITS, {"seed": set()})
        with self.assertRaisesRegex(
            stepop.StepopError, r"flags such as --check make none: \['--check'\]$"
        ):
            stepop.train(DIGITS, flags=["--check"], quiet=True)
        with self.assertRaisesRegex(stepop.StepopError, "a run that is resumed keeps its name"):
            stepop.train(self.folder, name="a")

    def test_a_dict_is_a_config_and_merges_as_a_file_does(self):
        run = stepop.train([DIGITS, {"num_steps": 2, "optimizer": {"lr": 1e-3}}], quiet=True)
        self.assertEqual(run.config["optimizer"], {"class": "Adam", "lr": 0.001})
        whole = dict(run.config, num_steps=3)
        again = stepop.train(whole, {"optimizer": {"lr": 2e-3}}, quiet=True)
        self.assertEqual(again.config["optimizer"], {"class": "Adam", "lr": 0.002})
        self.assertEqual((again.step, again.config["model"]), (3, run.config["model"]))
        with self.assertRaises(stepop.StepopError) as caught:
            stepop.train([DIGITS, {"optimizer/lrr": 1e-3}], quiet=True)
        self.assertEqual(
            str(caught.exception),
            'config: unknown key "optimizer/lrr": did you mean "optimizer/lr"?\n'
            "(--allow-unknown makes this a warning)",
        )
        self.assertEqual([path for path in os.listdir() if path.startswith(".config")], [])
        with self.assertRaisesRegex(stepop.StepopError, "^a config is a path here: write the dict"):
            stepop.sweep({"iterator": "Classifier"}, {"seed": [1, 2]})

    def test_a_training_that_fails_later_names_its_run(self):
        run = self.endless()
        run._started.process.kill()
        with self.assertRaisesRegex(stepop.StepopError, "^stepop was killed by SIGKILL") as caught:
            run.wait()
        self.assertEqual(caught.exception.run, str(run.path))
        self.assertEqual(stepop.Run(run.path).state, "killed")

    def test_the_list_of_runs_is_that_of_the_command(self):
        with self.assertRaisesRegex(stepop.StepopError, "^stepop runs: logs: no such folder"):
            stepop.runs()
        (self.folder / "logs").mkdir()
        self.assertEqual(list(stepop.runs().columns)[0], "state")
        stepop.train(DIGITS, {"num_steps": 3, "optimizer/lr": 0.01}, name="a", quiet=True)
        stepop.train(DIGITS, {"num_steps": 2}, name="b", quiet=True)
        text = files.call(files.BUILD / "stepop", "runs", "--json", "--best", "accuracy")
        frame = stepop.runs(best="accuracy", where="num_steps>1", show=["optimizer/lr"])
        self.assertEqual(frame.index.to_list(), [one["run"] for one in json.loads(text)])
        self.assertEqual(sorted(frame["step"]), [2, 3])
        self.assertEqual(stepop.Run(frame["folder"].iloc[0]).name, frame.index[0])
        self.assertEqual(stepop.runs(where=["num_steps=3"])["step"].to_list(), [3])

    def test_a_sweep_trains_each_point(self):
        sweep = stepop.sweep(
            DIGITS, {"optimizer/lr": [1e-3, 1e-2]}, points=[{"num_steps": 3, "seed": 0}, {"num_steps": 3, "seed": 1}],
            over=["seed"], name="lr", jobs=2, quiet=True,
        )  # fmt: skip
        self.assertEqual(sorted(sweep.table["optimizer/lr"]), [0.001, 0.01])
        self.assertEqual(sweep.table["ended"].to_list(), [2, 2])
        self.assertEqual([run.state for run in sweep.runs], ["ended"] * 4)
        self.assertEqual(sweep.best.config["optimizer"]["lr"], sweep.table["optimizer/lr"][0])
        self.assertIn("<table", sweep._repr_html_())
        self.assertEqual(os.listdir(), ["endless.yaml", "logs"])
        again = stepop.sweep("logs/sweeps/lr", quiet=True)
        self.assertEqual(len(again.results), 4)

    def test_the_best_of_a_sweep_is_by_its_metric(self):
        (self.folder / "plain.yaml").write_text(
            f"include: [{DIGITS}]\ncheckpoints: null\nnum_epochs: 3\n"
        )
        metric = "validation/eval_op/loss"
        swept = stepop.sweep(
            "plain.yaml", {"optimizer/lr": [0.01, 0.3]}, metric=metric, quiet=True
        )
        best = swept.best
        losses = {one.step: one.metric for one in best.checkpoints}
        step = min(losses, key=losses.get)
        self.assertEqual(len(losses), 3)
        for checkpoint in ("best", step):
            stepop.export(best, f"{checkpoint}.pt", checkpoint=checkpoint, quiet=True)
        exported = [(self.folder / f"{one}.pt").read_bytes() for one in ("best", step)]
        self.assertEqual(len(exported[0]), len(exported[1]))
        weights = [best.weights(one)["model.conv1.weight"].tolist() for one in ("best", step)]
        self.assertEqual(weights[0], weights[1])
        with self.assertRaisesRegex(stepop.StepopError, "no checkpoint is marked as the best"):
            stepop.export(best.path, "x.pt", checkpoint="best", quiet=True)

    def test_a_sweep_is_stopped_and_a_wrong_one_is_said(self):
        sweep = stepop.sweep("endless.yaml", {"seed": [0, 1]}, wait=False)
        self.assertEqual(len(sweep.results), 2)
        sweep.stop()
        self.assertNotIn("running", sweep.results["state"].to_list())
        self.assertRaises(stepop.StepopError, stepop.Sweep(sweep.path).stop)
        for config, words, told in (
            (
                DIGITS,
                {"grid": {"seed": 3}},
                "^sweep: grid/seed: expected a list of values, found 3$",
            ),
            ("x.yaml", {"grid": {"seed": [3]}}, "^sweep: base: .*/x.yaml: no such file$"),
            (DIGITS, {"metric": "loss"}, "^sweep: no values: give grid="),
        ):
            with self.assertRaisesRegex(stepop.StepopError, told):
                stepop.sweep(config, **words)

    def test_a_program_that_is_not_there_is_said(self):
        with mock.patch.dict(os.environ, {"STEPOP": "/nowhere/stepop"}):
            with self.assertRaisesRegex(
                stepop.StepopError, "^STEPOP=/nowhere/stepop: no such program"
            ):
                stepop.train(DIGITS)
        package = self.folder / "site" / "stepop"
        with mock.patch.dict(os.environ, {"PATH": "", "STEPOP": ""}):
            with mock.patch.object(command, "__file__", str(package / "command.py")):
                with self.assertRaisesRegex(
                    stepop.StepopError, "nor on the PATH: set the variable STEPOP"
                ):
                    command.find_program()
                (package / "bin").mkdir(parents=True)
                (package / "bin" / "stepop").touch()
                self.assertEqual(command.find_program(), str(package / "bin" / "stepop"))
            installed = self.folder / "usr" / "bin" / "stepop"
            installed.parent.mkdir(parents=True)
            installed.touch()
            package = self.folder / "usr" / "share" / "stepop" / "eval_out" / "python" / "stepop"
            with mock.patch.object(command, "__file__", str(package / "command.py")):
                self.assertEqual(command.find_program(), str(installed))

    def test_python_m_stepop_is_the_program(self):
        version = files.call(files.BUILD / "stepop", "--version")
        script = [sys.executable, "-m", "stepop", "--version"]
        self.assertEqual(files.call(*script, env=self.environment()), version)
