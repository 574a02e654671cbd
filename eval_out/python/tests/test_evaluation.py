import csv
import pickle
import sys
import unittest
from unittest import mock

import h5py
import numpy as np

import stepop.eval
from stepop.eval.__main__ import summary
from tests import files


def message_of(function, kind=stepop.eval.EvalError):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was thrown")


class RichTest(unittest.TestCase):
    def setUp(self):
        self.e = stepop.eval.open(files.rich())
        self.addCleanup(self.e.close)

    def test_what_the_file_says_about_itself(self):
        e = self.e
        self.assertEqual((e.rows, len(e), e.complete, e.path), (12, 12, True, files.rich()))
        self.assertEqual((e.global_step, e.split), (70, "test"))
        self.assertEqual((e.iterator, e.model, e.git, e.scalars), (None, None, None, {}))
        self.assertEqual(e.attributes["note"], "for tests")
        kinds = {name: type(value) for name, value in e.attributes.items()}
        self.assertEqual(
            kinds,
            {"complete": bool, "config": str, "epoch": float, "format_version": int,
             "global_step": int, "note": str, "rows": int, "split": str},
        )  # fmt: skip
        self.assertEqual(e.index.tolist(), list(range(0, 24, 2)))
        self.assertEqual(repr(e), f"<Evaluation {files.rich()}: 12 rows, step 70>")

    def test_keys_are_those_of_h5py(self):
        with h5py.File(files.rich(), "r") as f:
            names = []
            f["outputs"].visititems(
                lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
            )
        self.assertEqual(
            sorted(self.e.outputs),
            sorted({name.replace("boxes/values", "boxes") for name in names} - {"boxes/offsets"}),
        )
        self.assertEqual(len(self.e.outputs), 10)
        self.assertIn("encoder/mean", self.e.outputs)
        self.assertNotIn("encoder", self.e.outputs)
        self.assertEqual(
            repr(self.e.labels),
            f"{files.rich()}: labels\n"
            "  center       float32 [12, 2]\n"
            "  correct      bool [12]\n"
            "  count        int64 [12]\n"
            "  group/score  float64 [12]\n"
            "  loss         float32 [12]",
        )
        self.assertEqual(repr(self.e.outputs["boxes"]), "<outputs/boxes: ragged int32 [12, *, 4]>")

    def test_an_example_is_a_nested_dict(self):
        one = self.e[5]
        self.assertEqual((one["index"], type(one["index"])), (10, int))
        self.assertEqual(one["outputs"]["encoder"]["deep"]["text"], "Zeile 5 ä😀")
        self.assertEqual(one["outputs"]["encoder"]["mean"].tolist(), [500.0, 501.0])
        self.assertEqual(one["outputs"]["boxes"].shape, (2, 4))
        self.assertEqual(one["outputs"]["image"].shape, (3, 4, 5))
        self.assertEqual(one["labels"]["group"]["score"], 0.625)
        self.assertEqual(one["labels"]["correct"], np.False_)
        self.assertEqual(one["labels"]["center"].tolist(), [500.0, 501.0])
        self.assertEqual(set(one), {"index", "outputs", "labels"})

    def test_iterating_gives_the_examples_one_by_one(self):
        for row, one in enumerate(self.e):
            np.testing.assert_equal(one, self.e[row])
        self.assertEqual(row, 11)
        self.assertIsNone(one["outputs"]["image"].base)
        chosen = self.e[[7, -1, 7]]
        self.assertEqual([one["index"] for one in chosen], [14, 22, 14])
        np.testing.assert_equal(chosen[1], self.e[11])
        self.assertEqual([one["index"] for one in self.e[2:8:3]], [4, 10])
        self.assertEqual(self.e[3:3], [])
        self.assertEqual(
            message_of(lambda: self.e[12], IndexError), f"{files.rich()}: no row 12; it has 12 rows"
        )

    def test_labels_are_a_table(self):
        labels = self.e.labels
        np.testing.assert_array_equal(labels["loss"], np.asarray(labels.arrays()["loss"]))
        self.assertEqual(labels["loss"].shape, (12,))
        self.assertIs(labels["loss"], labels["loss"])
        self.assertEqual(labels["correct"].dtype, np.bool_)
        with self.assertRaises(ValueError):
            labels["loss"][0] = 1
        self.e.close()  # what was read stays
        self.assertTrue(np.isnan(labels["loss"][3]))

    def test_pandas_that_is_not_there_is_told(self):
        with mock.patch.dict(sys.modules, pandas=None):
            self.assertEqual(
                message_of(self.e.labels.to_pandas, ImportError),
                "to_pandas() needs pandas, which is not installed: pip install pandas",
            )

    def test_labels_become_a_data_frame(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        table = self.e.labels.to_pandas()
        self.assertEqual(
            list(table.columns), ["center/0", "center/1", "correct", "count", "group/score", "loss"]
        )
        self.assertEqual((table.index.name, table.index.tolist()), ("index", list(range(0, 24, 2))))
        self.assertEqual(table.loc[10, "center/1"], 501.0)
        np.testing.assert_array_equal(table["loss"].to_numpy(), self.e.labels["loss"])

    def test_the_worst_rows_begin_with_nan_and_equals_keep_their_order(self):
        # 0 2 4 NaN 3 0 2 4 1 3 0 2
        self.assertEqual(self.e.worst("loss", 6).tolist(), [3, 2, 7, 4, 9, 1])
        self.assertEqual(self.e.worst("loss", 4, largest=False).tolist(), [3, 0, 5, 10])
        self.assertEqual(self.e.best("loss", 4).tolist(), [0, 5, 10, 8])
        self.assertEqual(self.e.best("loss", 99).tolist(), [0, 5, 10, 8, 1, 6, 11, 4, 9, 2, 7, 3])
        self.assertEqual(self.e.best("loss", 3, largest=True).tolist(), [2, 7, 4])
        self.assertEqual(self.e.best("loss", 12, largest=True)[-1], 3)
        self.assertEqual(self.e.worst("loss", 0).tolist(), [])
        self.assertEqual(self.e.worst("correct", 3, largest=False).tolist(), [1, 2, 4])
        self.assertEqual(self.e.worst("count", 2).tolist(), [0, 1])
        self.assertEqual(self.e.worst("group/score", 2).tolist(), [11, 10])
        self.assertEqual([one["index"] for one in self.e[self.e.worst("loss", 2)]], [6, 4])
        self.assertEqual(self.e.outputs["logits"][self.e.worst("loss", 2), 0].tolist(), [300, 200])

    def test_rows_of_weight_0_have_no_rank_and_no_part_in_the_mean(self):
        path = files.scratch() / "outputs.h5"
        with h5py.File(path, "w") as made:
            made.attrs["format_version"], made.attrs["rows"] = 1, 4
            made.attrs["complete"] = np.bool_(True)
            made["index"] = np.arange(4)
            made["labels/loss"] = np.array([0.0, 3.0, np.nan, 5.0], np.float32)
            made["weights/loss"] = np.array([0.0, 3.0, 0.0, 1.0], np.float32)
            made["labels/plain"] = np.array([1, 2, 3, 4])
        with stepop.eval.open(path) as e:
            self.assertEqual(e.counting("loss").tolist(), [False, True, False, True])
            self.assertEqual(e.counting("plain").tolist(), [True] * 4)
            self.assertEqual(e.best("loss", 4).tolist(), [1, 3])
            self.assertEqual(e.worst("loss", 4).tolist(), [3, 1])
            self.assertEqual((e.mean("loss"), e.mean("plain")), (3.5, 2.5))
            self.assertEqual(e.weights["loss"].tolist(), [0, 3, 0, 1])
            self.assertIn("3 to 5, mean 4, 2 rows of weight 0 left out", summary(e))

    def test_a_label_that_has_no_order_is_refused(self):
        self.assertEqual(
            message_of(lambda: self.e.worst("center", 2)),
            f"{files.rich()}: labels/center is float32 [12, 2]; only one number an example can be the worst",
        )
        self.assertEqual(
            message_of(lambda: self.e.best("loss", -1), ValueError), "cannot take -1 rows"
        )

    def test_a_key_that_is_not_there_is_told_with_the_nearest(self):
        where = files.rich()
        self.assertEqual(
            message_of(lambda: self.e.outputs["logit"], KeyError),
            f'{where}: outputs: no "logit"; did you mean "logits"? there are: bfloat16, boxes, '
            "complex, empty, encoder/deep/text, encoder/mean, flag, half, image, logits",
        )
        self.assertEqual(
            message_of(lambda: self.e.outputs["encoder"]),
            f'{where}: outputs: "encoder" is a group; there are: encoder/deep/text, encoder/mean',
        )
        self.assertEqual(
            message_of(lambda: self.e.worst("zzz", 1), stepop.eval.UnknownKeyError),
            f'{where}: labels: no "zzz"; there are: center, correct, count, group/score, loss',
        )
        self.assertIsNone(self.e.labels.get("zzz"))

    def test_rows_are_joined_with_their_examples(self):
        class Dataset:
            def __init__(self, size):
                self.size, self.asked = size, []

            def __len__(self):
                return self.size

            def __getitem__(self, index):
                assert type(index) is int
                self.asked.append(index)
                return f"image {index}"

        dataset = Dataset(23)
        joined = self.e.join(dataset)
        self.assertEqual((len(joined), dataset.asked), (12, []))
        example, result = joined[-1]
        self.assertEqual((example, result["index"], dataset.asked), ("image 22", 22, [22]))
        self.assertEqual(
            [pair.example for pair in joined[self.e.worst("loss", 2)]], ["image 6", "image 4"]
        )
        self.assertEqual([pair.example for pair in joined[1:3]], ["image 2", "image 4"])
        self.assertEqual([pair.example for pair in joined], [f"image {i}" for i in range(0, 24, 2)])
        self.assertEqual(self.e.join({i: i for i in range(30)})[3].example, 6)
        self.assertEqual(
            message_of(lambda: self.e.join(Dataset(21))),
            f'{files.rich()}: row 11 is example 22 of its dataset, this one has 21; is it the split "test"?',
        )

    def test_rows_of_a_fold_are_joined_with_the_file_or_the_fold_and_with_no_other_table(self):
        class Table:  # as pandas has it: its own brackets are for columns
            def __init__(self, rows):
                self.iloc = rows

            def __len__(self):
                return len(self.iloc)

        e = stepop.eval.open(files.folds())
        self.addCleanup(e.close)
        with (files.folds().parents[1] / "table.csv").open() as file:
            table = list(csv.DictReader(file))
        self.assertEqual((e.rows, e.index.tolist()), (10, list(range(10))))
        self.assertNotEqual(e.source_index.tolist(), e.index.tolist())
        for dataset in (table, Table(table)):
            rows = [int(pair.example["row"]) for pair in e.join(dataset)]
            self.assertEqual(rows, e.source_index.tolist())
        self.assertEqual(e[3]["source_index"], int(e.source_index[3]))
        fold = [table[i] for i in e.source_index]
        self.assertEqual(e.join(fold)[9].example, fold[9])
        self.assertEqual(
            message_of(lambda: e.join(table[:39])),
            f"{e.path}: the evaluated dataset has 10 examples, chosen from 40; this one has 39; "
            'is it the split "validation"?',
        )
        self.assertEqual(self.e.source_index.tolist(), self.e.index.tolist())

    def test_a_closed_file_is_told(self):
        logits = self.e.outputs["logits"]
        with self.e as same:
            self.assertIs(same, self.e)
            boxes = self.e.outputs["boxes"]
        self.e.close()
        text = "the file was closed; open it again"
        self.assertEqual(message_of(lambda: logits[0]), f"{files.rich()}: outputs/logits: {text}")
        self.assertEqual(message_of(lambda: boxes[0]), f"{files.rich()}: outputs/boxes: {text}")
        self.assertEqual(message_of(lambda: self.e[0]), f"{files.rich()}: index: {text}")
        self.assertEqual(
            message_of(lambda: self.e.labels["loss"]), f"{files.rich()}: labels/loss: {text}"
        )

    def test_a_file_that_h5py_has_open_as_well(self):
        with h5py.File(files.rich(), "r"), stepop.eval.open(files.rich()) as e:
            self.assertEqual(e.rows, 12)
        with h5py.File(files.rich(), "r") as f:
            self.assertEqual(f.attrs["rows"], self.e.rows)
        self.e.close()
        with h5py.File(files.rich(), "r", locking=False), stepop.eval.open(files.rich()) as e:
            self.assertEqual(e.rows, 12)

    def test_it_passes_to_another_process(self):
        joined = pickle.loads(pickle.dumps(self.e.join(list(range(30)))))
        self.assertEqual(joined[2].example, 4)
        np.testing.assert_equal(joined[2].result, self.e[2])

    def test_a_config_that_is_only_yaml(self):
        try:
            import yaml  # noqa: F401
        except ImportError:
            self.skipTest("PyYAML is not installed")
        self.assertEqual(self.e.config, {"optimizer": {"lr": 1e-3}, "name": "{a}"})

    def test_a_config_that_is_only_yaml_without_pyyaml(self):
        with mock.patch.dict(sys.modules, yaml=None):
            self.assertEqual(
                message_of(lambda: self.e.config),
                f"{files.rich()}: it has its config as YAML only, which needs PyYAML: pip install "
                'pyyaml; the text itself is attributes["config"]',
            )


class RunTest(unittest.TestCase):
    """On what the command wrote."""

    def setUp(self):
        self.e = stepop.eval.open(files.run())
        self.addCleanup(self.e.close)

    def test_it_is_the_latest_evaluation(self):
        self.assertEqual(self.e.path, files.evaluation(46) / "outputs.h5")
        self.assertEqual((self.e.rows, self.e.complete, self.e.global_step), (355, True, 46))
        self.assertEqual(
            (self.e.split, self.e.iterator, self.e.model), ("validation", "Classifier", "LeNet")
        )
        self.assertTrue(self.e.git)

    def test_the_config_has_its_types(self):
        config = self.e.config
        self.assertEqual(
            config["optimizer"],
            {"class": "Adam", "lr": {"class": "cosine", "from": 0.006, "to": 1e-05, "steps": "end"}},
        )
        self.assertEqual((config["batch_size"], type(config["batch_size"])), (64, int))
        self.assertEqual(config["model"]["hidden"], [120, 84])
        self.assertEqual(config["extra"], {"bound": float("inf"), "text": "{a}"})
        self.assertIn('text: "{{', self.e.attributes["config"])

    def test_the_json_and_the_yaml_of_the_config_agree(self):
        try:
            import yaml  # noqa: F401
        except ImportError:
            self.skipTest("PyYAML is not installed")
        from stepop.eval.config import read_config

        attributes = {
            key: value for key, value in self.e.attributes.items() if key != "config_json"
        }
        self.assertEqual(read_config(self.e.path, attributes), self.e.config)

    def test_the_arrays_are_those_of_h5py(self):
        with h5py.File(self.e.path, "r") as f:
            np.testing.assert_array_equal(self.e.outputs["logits"], f["outputs/logits"][()])
            np.testing.assert_array_equal(
                self.e.outputs["logits"][10:20], f["outputs/logits"][10:20]
            )
            np.testing.assert_array_equal(self.e.labels["loss"], f["labels/loss"][()])
            worst = f["labels/loss"][()].argsort()[::-1][:5]
        np.testing.assert_array_equal(self.e.worst("loss", 5), worst)

    def test_the_scalars_are_those_of_the_outputs(self):
        correct = self.e.outputs["logits"][:].argmax(1) == self.e.outputs["class"]
        scalars = self.e.scalars
        self.assertAlmostEqual(scalars["validation/eval_op/accuracy/accuracy"], correct.mean())
        self.assertAlmostEqual(
            scalars["validation/eval_op/loss"], self.e.labels["loss"].mean(dtype=np.float64)
        )
