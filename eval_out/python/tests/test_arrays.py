import unittest

import h5py
import numpy as np

import stepop.eval
from stepop.eval import rows as rows_module
from tests import files


def rows(n, *shape):
    """Value j of row i is 100 * i + j, as the writer of the file has it."""
    each = int(np.prod(shape, dtype=int))
    return (100 * np.arange(n)[:, None] + np.arange(each)).reshape(n, *shape)


class ArraysTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.e = stepop.eval.open(files.rich())
        cls.h5 = h5py.File(files.rich(), "r")
        cls.addClassCleanup(cls.e.close)
        cls.addClassCleanup(cls.h5.close)

    def same(self, found, expected):
        np.testing.assert_array_equal(found, expected)
        self.assertEqual(np.asarray(found).dtype, np.asarray(expected).dtype)
        self.assertEqual(type(found), type(expected))

    def test_every_type_is_what_the_model_returned(self):
        i = np.arange(12)
        expected = {
            "logits": rows(12, 4).astype(np.float32),
            "image": (rows(12, 3, 4, 5) % 256).astype(np.uint8),
            "half": (i / 2).astype(np.float16),
            "bfloat16": (i / 4).astype(np.float32),
            "flag": i % 2 == 0,
            "complex": (i * (1 - 2j)).astype(np.complex64),
            "empty": np.zeros((12, 0), np.float32),
            "encoder/mean": rows(12, 2).astype(np.float64),
        }
        for key, values in expected.items():
            with self.subTest(key):
                array = self.e.outputs[key]
                self.same(np.asarray(array), values)
                self.assertEqual((array.shape, array.dtype), (values.shape, values.dtype))
                self.assertEqual((len(array), array.ndim, array.kind), (12, values.ndim, "numbers"))

    def test_rows_are_chosen_as_numpy_chooses_them(self):
        mask = np.arange(12) % 5 == 1
        for key in (
            0, 11, -1, -12, np.int64(3), np.array(4), slice(None), slice(2, 5), slice(-3, None), slice(5, 2),
            slice(None, None, 3), slice(10, 1, -4), slice(None, None, -1), slice(5, 99), slice(20, 30),
            [3, 1, 1, -1], np.array([0, 11], np.uint8), np.array([], int), [], mask, mask.tolist(),
            ~mask, np.zeros(12, bool), ..., (), (..., 1), (slice(2, 4), 1), (3, 2), (-1, slice(None, None, 2)),
            (slice(None), -1), ([5, 2], slice(1, 3)), (slice(3), slice(None, None, -1)), (slice(3), [2, 0, 0]),
            ([5, 2], [0, 3]), (mask, [0, 3, 1]), (4, [1, 1]), (slice(None, None, 2), [True, False, True, False]),
            (slice(0, 0), 1), (2, ...),
        ):  # fmt: skip
            with self.subTest(key=key):
                self.same(self.e.outputs["logits"][key], self.h5["outputs/logits"][()][key])

    def test_further_dimensions_of_images(self):
        whole = self.h5["outputs/image"][()]
        for key in (
            (slice(2, 9), 0), (slice(2, 9), slice(None), 1, slice(0, 5, 2)), (3, ..., 4), ([7, 2], ..., 4),
            (slice(None, None, -2), 1, slice(1, 3)), (..., [4, 0]), ([1, 5], 0, [2, 3]), (5, slice(None, None, -1)),
        ):  # fmt: skip
            with self.subTest(key=key):
                self.same(self.e.outputs["image"][key], whole[key])

    def test_texts_are_str(self):
        texts = self.e.outputs["encoder/deep/text"]
        expected = ["" if i % 4 == 0 else f"Zeile {i} ä😀" for i in range(12)]
        self.assertEqual(texts[5], "Zeile 5 ä😀")
        self.assertEqual((type(texts[5]), type(texts[0]), texts[-12]), (str, str, ""))
        self.assertEqual(texts[2:5].tolist(), expected[2:5])
        self.assertEqual(texts[[7, 0, 7]].tolist(), [expected[7], "", expected[7]])
        self.assertEqual(np.asarray(texts).tolist(), expected)
        self.assertEqual(list(texts), expected)
        self.assertEqual((texts.shape, texts.dtype, texts.kind), ((12,), np.dtype(object), "text"))

    def test_ragged_rows_are_arrays_of_their_own_length(self):
        boxes = self.e.outputs["boxes"]
        expected = [
            (100 * i + np.arange(i % 3 * 4)).reshape(i % 3, 4).astype(np.int32) for i in range(12)
        ]
        for i in (0, 1, 5, -1):
            self.same(boxes[i], expected[i])
        for key in (slice(None), slice(2, 9, 3), slice(None, None, -1), slice(4, 4)):
            found = boxes[key]
            self.assertEqual((found.dtype, len(found)), (np.dtype(object), len(expected[key])))
            for one, other in zip(found, expected[key]):
                self.same(one, other)
        for one, i in zip(boxes[[8, 3, 8]], (8, 3, 8)):
            self.same(one, expected[i])
        self.assertEqual(boxes.lengths.tolist(), [i % 3 for i in range(12)])
        self.assertEqual(
            (boxes.shape, boxes.dtype, boxes.kind), ((12,), np.dtype(np.int32), "ragged")
        )
        self.assertEqual([len(one) for one in boxes], boxes.lengths.tolist())

    def test_arrays_can_be_iterated_and_turned_into_others(self):
        logits = self.e.outputs["logits"]
        self.same(np.stack(list(logits)), self.h5["outputs/logits"][()])
        self.same(
            np.asarray(logits, dtype=np.int16), self.h5["outputs/logits"][()].astype(np.int16)
        )
        self.same(np.array(logits, copy=True), self.h5["outputs/logits"][()])
        self.assertEqual(float(np.mean(logits)), float(self.h5["outputs/logits"][()].mean()))
        self.assertIsNone(next(iter(logits)).base)

    def test_what_chooses_no_rows_is_refused(self):
        for key, text in (
            (12, "no row 12; it has 12 rows"),
            (-13, "no row -13; it has 12 rows"),
            ([1, 12], "no row 12; it has 12 rows"),
            ([True, False], "2 booleans for 12 rows"),
            ("loss", "not by 'loss'"),
            (1.5, "not by 1.5"),
            (True, "not by True"),
            (None, "not by None"),
            (np.zeros((2, 2), int), "rows are chosen by"),
            ((0, 0, 0), "too many indices for float32 [12, 4]"),
            ((..., ...), "too many indices"),
        ):
            with self.subTest(key=key):
                with self.assertRaises(IndexError) as caught:
                    self.e.outputs["logits"][key]
                self.assertIn(text, str(caught.exception))
                self.assertIn(f"{files.rich()}: outputs/logits: ", str(caught.exception))
        with self.assertRaises(IndexError):
            self.e.outputs["encoder/deep/text"][0, 0]
        with self.assertRaises(IndexError):
            self.e.outputs["logits"][:, 4]

    def test_only_what_is_asked_for_is_read(self):
        class Counting:
            def __init__(self, dataset):
                self.dataset, self.shape, self.dtype, self.read = (
                    dataset,
                    dataset.shape,
                    dataset.dtype,
                    [],
                )

            def __bool__(self):
                return True

            def __getitem__(self, key):
                values = self.dataset[key]
                self.read.append(values.shape)
                return values

        counting = Counting(self.h5["outputs/image"])
        image = stepop.eval.Array(files.rich(), "outputs/image", counting, 12)
        self.assertEqual(counting.read, [])
        image[3:5]
        image[7, 0, :, 1:3]
        image[[9, 2, 9], 1]
        self.assertEqual(counting.read, [(2, 3, 4, 5), (1, 4, 2), (8, 4, 5)])

    def test_rows_of_unknown_size_are_read_with_few_that_nobody_asked_for(self):
        path = files.scratch() / "outputs.h5"
        with h5py.File(path, "w") as f:
            f.attrs.update(format_version=1, rows=300, complete=True)
            f["index"] = np.arange(300)
            f["outputs/text"] = ["x" * 30_000] * 300
            f["outputs/large/values"] = np.zeros(300 * 10_000, np.int64)
            f["outputs/large/offsets"] = np.arange(301) * 10_000
            f["outputs/large"].attrs["ragged"] = True
        with stepop.eval.open(path) as e:
            for key, row_bytes in (("text", 30_049), ("large", 80_000)):
                with self.subTest(key):
                    array = e.outputs[key]
                    self.assertEqual(array.row_bytes, row_bytes)
                    read = []
                    one = array._read
                    array._read = lambda *rows: read.append(rows[:2]) or one(*rows)
                    self.assertEqual(len(array[[0, 200]]), 2)
                    self.assertEqual(read, [(0, 1), (200, 201)])
                    read.clear()
                    self.assertEqual(sum(1 for _ in array), 300)
                    self.assertLessEqual(max(last - first for first, last in read), 8e6 / row_bytes)

    def test_scattered_rows_are_read_in_pieces_that_hold_them_all(self):
        generator = np.random.default_rng(1)
        for row_bytes in (1, 8, 4000, 70_000, 9_000_000):
            wanted = np.unique(generator.integers(0, 100_000, 300))
            found = []
            for first, last, inside in rows_module.pieces(wanted, row_bytes):
                self.assertTrue(
                    (last - first) * row_bytes <= rows_module.BLOCK_BYTES or last - first == 1
                )
                self.assertEqual((inside[0], inside[-1]), (0, last - first - 1))
                found.append(first + inside)
            np.testing.assert_array_equal(np.concatenate(found), wanted)

    def test_random_rows_of_a_long_array(self):
        path = files.scratch() / "outputs.h5"
        with h5py.File(path, "w") as f:
            f.attrs.update(format_version=1, rows=190_000, complete=True)
            f["index"] = np.arange(200_000)
            f["outputs/x"] = np.arange(2_000_000).reshape(200_000, 10)
        with stepop.eval.open(path) as e:
            whole = np.arange(1_900_000).reshape(190_000, 10)
            generator = np.random.default_rng(2)
            for count in (1, 50, 5000):
                chosen = generator.integers(-190_000, 190_000, count)
                self.same(e.outputs["x"][chosen], whole[chosen])
            self.same(e.outputs["x"][::-1, 3], whole[::-1, 3])
            self.same(e.outputs["x"][17::70_001], whole[17::70_001])
            self.assertEqual(sum(1 for _ in e.outputs["x"]), 190_000)
