import doctest
import importlib
import json
import os
import struct
import sys
import unittest
from html.parser import HTMLParser
from unittest import mock

import numpy as np
import safetensors.numpy
import yaml

import stepop
from stepop.errors import yaml_text
from stepop.files import read_weights
from stepop.page import group_curves, thinned
from tests import files
from tests.runs import TIME, MadeRun, numbers


def run_of(made):
    return stepop.Run(made.path)


class RunTest(unittest.TestCase):
    def test_metrics_are_the_numbers_of_the_file_by_step(self):
        frame = stepop.Run(files.run()).metrics
        expected = numbers(files.run())
        self.assertEqual(frame.index.name, "step")
        self.assertEqual(frame.index.to_list(), sorted(expected))
        for step, row in expected.items():
            self.assertEqual(frame.loc[step].dropna().to_dict(), row)

    def test_metrics_come_while_a_line_is_half_written(self):
        made = MadeRun()
        made.state("running")
        run = run_of(made)
        self.assertEqual(run.metrics.shape, (0, 0))
        made.log(1, a=0.5)
        with open(made.metrics, "a") as file:
            file.write('{"step": 2, "a": ')
            file.flush()
            self.assertEqual(run.metrics["a"].to_dict(), {1: 0.5})
            file.write('"NaN"}\n{"step": 3, "a": "Infinity"}\n')
        self.assertEqual(run.metrics["a"].dropna().to_dict(), {1: 0.5, 3: float("inf")})
        self.assertEqual((run.state, run.step), ("running", 3))

    def test_what_a_resume_dropped_is_gone(self):
        made = MadeRun()
        for step in range(5):
            made.log(step, a=step)
        run = run_of(made)
        self.assertEqual(run.step, 4)
        made.cut(2)
        made.log(3, a=7)
        self.assertEqual(run.metrics["a"].to_list(), [0, 1, 2, 7])

    def test_images_are_lists_by_key_in_the_order_of_steps(self):
        made = MadeRun()
        for step in (20, 3, 100):
            made.file("train/log_op/more/x", step, b"\x89PNG")
        made.file("validation/log_op/y", 50, ending=".jpg")
        made.file("train/log_op/text", 50, ending=".txt")
        images = run_of(made).images
        self.assertEqual(list(images), ["train/log_op/more/x", "validation/log_op/y"])
        self.assertEqual([one.step for one in images["train/log_op/more/x"]], [3, 20, 100])
        self.assertEqual([one.step for one in images.last()], [100, 50])
        self.assertIn(
            "data:image/png;base64,iVBORw==", images["train/log_op/more/x"][0]._repr_html_()
        )
        with self.assertRaisesRegex(KeyError, 'no "train/log_op/more/z"; did you mean'):
            images["train/log_op/more/z"]

    def test_images_of_evaluations_are_told_apart_and_shown(self):
        made = MadeRun()
        made.file("train/log_op/x", 30)
        for start, step, name in (
            ("b", 100, "confusion_matrix/matrix.png"),
            ("b", 20, "confusion_matrix/matrix.png"),
            ("a", 100, "confusion_matrix/matrix.png"),
            ("b", 100, "again/samples/x_0000100.jpg"),
            ("b", 100, "confusion_matrix/matrix.csv"),
            ("b", "other", "confusion_matrix/matrix.png"),
        ):
            path = made.path / "eval" / start / str(step) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"?")
        run = run_of(made)
        self.assertEqual(
            {key: [(one.step, one.evaluation) for one in images] for key, images in run.images.items()},
            {
                "eval/again/samples/x": [(100, "b")],
                "eval/confusion_matrix/matrix": [(20, "b"), (100, "a"), (100, "b")],
                "train/log_op/x": [(30, "")],
            },
        )  # fmt: skip
        self.assertIn("eval/confusion_matrix/matrix: 2 steps", repr(run.images))
        page = run._repr_html_()
        self.assertIn("eval/confusion_matrix/matrix, step 100, b", page)
        self.assertIn("train/log_op/x, step 30<", page)

    def test_states_have_the_words_of_the_command(self):
        made = MadeRun()
        states = []
        for state, pid in (
            ("running", None),
            ("running", 2**22 + 1),
            ("done", None),
            ("stopped", None),
        ):
            made.state(state, pid=pid)
            states.append(run_of(made).state)
        self.assertEqual(states, ["running", "killed", "ended", "stopped"])

    def test_weights_are_what_safetensors_reads(self):
        run = stepop.Run(files.run())
        expected = safetensors.numpy.load_file(run.checkpoints[-1].path)
        for network, prefix in ((None, ""), ("model", "model."), ("optimizer", "optimizer.")):
            weights = run.weights("latest", network)
            names = [name for name in expected if name.startswith(prefix or "model.")]
            self.assertEqual([prefix + name for name in weights], sorted(names))
            for name, values in weights.items():
                np.testing.assert_array_equal(values, expected[prefix + name], strict=True)
        self.assertEqual(run.weights(23).keys(), run.weights("best").keys())

    def test_weights_of_bfloat16_and_tied_ones(self):
        path = files.scratch() / "model-1.safetensors"
        header = {
            "__metadata__": {"aliases": '{"net.b": "net.a"}'},
            "net.a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
            "up.count": {"dtype": "I64", "shape": [], "data_offsets": [4, 12]},
            "up.skipped": {"dtype": "I64", "shape": [], "data_offsets": [4, 12]},
            "seen.value": {"dtype": "I64", "shape": [], "data_offsets": [4, 12]},
        }
        text = json.dumps(header).encode()
        data = struct.pack("<HHq", 0x3F80, 0xC020, 5)  # 1.0, -2.5, 5
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        weights = read_weights(path, None)
        self.assertEqual({name: one.tolist() for name, one in weights.items()},
                         {"net.a": [1, -2.5], "net.b": [1, -2.5]})  # fmt: skip
        self.assertEqual(read_weights(path, "up")["count"].item(), 5)
        for size, told in (
            (4, "it ends within its header"),
            (len(text) + 9, "cut short within net.a"),
        ):
            path.write_bytes((struct.pack("<Q", len(text)) + text + data)[:size])
            with self.assertRaisesRegex(stepop.StepopError, told):
                read_weights(path, None)

    def test_what_hooks_and_iterators_track_is_no_network(self):
        path = files.scratch() / "model-1.safetensors"
        number = {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}
        names = ("net.a", "ema_net.a", "hooks/spike/losses.window", "manager.mean", "random.cpu")
        for networks, kept in (
            ({"networks": '["ema_net", "net"]'}, ["ema_net.a", "net.a"]),
            ({}, ["ema_net.a", "manager.mean", "net.a"]),  # of 0.1.0: what it may be
        ):
            text = json.dumps({"__metadata__": networks, **dict.fromkeys(names, number)}).encode()
            path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<q", 5))
            self.assertEqual(list(read_weights(path, None)), kept)
            self.assertEqual(read_weights(path, "manager")["mean"].item(), 5)

    def test_a_checkpoint_that_is_not_there_is_said(self):
        run = stepop.Run(files.run())
        with self.assertRaisesRegex(
            stepop.StepopError, "no checkpoint 7; there are those of steps 23, 46"
        ):
            run.weights(7)
        with self.assertRaisesRegex(stepop.StepopError, "no checkpoint 'latest'; none yet"):
            run_of(MadeRun()).weights()

    def test_checkpoints_are_those_of_the_command(self):
        first, last = stepop.Run(files.run()).checkpoints
        self.assertEqual((first.step, first.epoch, last.step, last.epoch), (23, 1, 46, 2))
        table = files.call(files.BUILD / "stepop", "checkpoints", files.run())
        marked = {int(line.split()[0]) for line in table.splitlines() if line.endswith("best")}
        self.assertEqual({one.step for one in (first, last) if one.is_best}, marked)
        self.assertTrue(last.is_latest)
        self.assertIn(f"{last.metric:.4f}", table)

    def test_starts_are_the_records_of_the_run(self):
        (start,) = stepop.Run(files.run()).starts
        self.assertEqual((start.kind, start.step, start.host), ("new", 0, os.uname().nodename))
        self.assertIn("-n digits -b", start.command)
        self.assertEqual(start.record["processes"], 1)
        (start,) = run_of(MadeRun()).starts  # without a record
        self.assertEqual((start.time, start.kind, start.record), (TIME, "", {}))

    def test_an_error_of_the_readers_is_one_of_the_package(self):
        with self.assertRaisesRegex(stepop.StepopError, "^/nowhere: no such file or folder"):
            stepop.eval.open("/nowhere")

    def test_evaluations_and_the_config_are_those_of_stepop_dot_eval(self):
        run = stepop.Run(files.run())
        self.assertEqual(run.evaluations.steps.tolist(), [23, 46])
        self.assertEqual(run.evaluations[-1].config, run.config)
        self.assertEqual(len(run_of(MadeRun()).evaluations), 0)

    def test_the_error_of_a_failed_run_is_that_of_its_process(self):
        made = MadeRun()
        run = run_of(made)
        self.assertEqual(run.error, "")
        made.state("failed")
        self.assertEqual(run.error, f"see {made.path / 'train' / 'log.txt'}")  # of an earlier version
        made.state("failed", error="<nan> in step 3\nand more")
        self.assertEqual(run.error, "<nan> in step 3\nand more")
        self.assertIn("<pre", run._repr_html_())
        self.assertIn("&lt;nan&gt; in step 3\nand more", run._repr_html_())
        with self.assertRaisesRegex(stepop.StepopError, "failed, step 0>: <nan> in step 3"):
            run.wait()

    def test_without_pandas_a_table_says_what_to_install(self):
        run = stepop.Run(files.run())
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(
                stepop.StepopError, "^metrics is a DataFrame .*: pip install pandas$"
            ):
                run.metrics
            self.assertEqual(run.step, 46)
            self.assertIn("<svg", run._repr_html_())

    def test_what_is_no_run_is_said(self):
        with self.assertRaisesRegex(stepop.StepopError, "^/nowhere: no such folder$"):
            stepop.Run("/nowhere")
        with self.assertRaisesRegex(stepop.StepopError, "no training that could change"):
            run_of(MadeRun()).change({"optimizer/lr": 1})

    def test_values_are_written_as_yaml_reads_them(self):
        value = {
            "a": [1, -2.5, 1e-05, 1e300, True, None, "yes", "1e-3", 'q"\n\\ü😀', {}],
            "b/c": (),
            "d": {"e": "{{x}}"},
        }
        self.assertEqual(yaml.safe_load(yaml_text(value, "x")), {**value, "b/c": []})
        self.assertEqual(
            yaml_text([np.float32(0.5), np.arange(2), float("inf")], "x"), "[0.5, [0, 1], .inf]"
        )
        with self.assertRaisesRegex(stepop.StepopError, "^x/a/b: a config cannot hold a set; "):
            yaml_text({"a": {"b": set()}}, "x")


class Tags(HTMLParser):
    """Throws when the tags of a page are not closed in their order; keeps what it refers to."""

    def __init__(self, page):
        super().__init__()
        self.open, self.sources, self.names = [], [], set()
        self.feed(page)
        if self.open:
            raise ValueError(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError(tag)


class PageTest(unittest.TestCase):
    def test_it_has_state_curves_and_pictures_in_itself(self):
        page = stepop.Run(files.run())._repr_html_()
        tags = Tags(page)
        self.assertIn("ended", page)
        self.assertIn("step 46, epoch 2", page)
        self.assertEqual(page.count("<svg"), 2)  # loss, accuracy
        self.assertEqual(page.count("<polyline"), 6)
        self.assertEqual([source[:22] for source in tags.sources], ["data:image/png;base64,"] * 2)

    def test_names_are_escaped(self):
        made = MadeRun(name=f"{TIME}_<script>a&b")
        made.log(1, **{"train/<script>x</script>": 1, "train/\"'><b>": 2})
        made.file("train/log_op/<script>", 1)
        self.assertNotIn("script", Tags(run_of(made)._repr_html_()).names)

    def test_a_run_without_numbers_or_with_strange_ones_has_a_page(self):
        made = MadeRun()
        Tags(run_of(made)._repr_html_())
        for step, value in enumerate(("NaN", "Infinity", 1e308, -1e308, 0)):
            made.log(step, **{"train/a": value, "train/constant": 3, "train/never": "NaN"})
        page = run_of(made)._repr_html_()
        self.assertEqual(page.count("<svg"), 2)
        self.assertNotIn("nan", page.replace("nance", ""))
        self.assertNotIn("inf", page)

    def test_numbers_whose_names_end_alike_are_one_plot(self):
        rows = {
            1: {"train/op/loss": 1.0, "validation/loss": 2.0, "runtime/lr/loss": 3.0, "epoch": 1.0}
        }
        self.assertEqual(
            group_curves(rows),
            {"loss": {"train/op/loss": [(1, 1.0)], "validation/loss": [(1, 2.0)]}},
        )

    def test_a_long_curve_keeps_its_peaks(self):
        points = [(step, float(step == 4321)) for step in range(10_000)]
        few = thinned(points, 300)
        self.assertLessEqual(len(few), 300)
        self.assertIn((4321, 1.0), few)
        self.assertEqual(few, sorted(few))
        self.assertEqual(thinned(points[:100], 300), points[:100])


class DocstringTest(unittest.TestCase):
    def test_the_lines_in_docstrings_do_what_they_say(self):
        told, count = [], 0
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        with files.inside(files.root()):
            for path in sorted((files.PACKAGE / "stepop").glob("[a-z]*.py")):
                module = importlib.import_module(f"stepop.{path.stem}")
                for test in doctest.DocTestFinder().find(module, extraglobs={"stepop": stepop}):
                    runner.run(test, out=told.append)
                    count += len(test.examples)
            for test in doctest.DocTestFinder().find(stepop):
                runner.run(test, out=told.append)
                count += len(test.examples)
        self.assertEqual("".join(told), "")
        self.assertGreater(count, 8)
