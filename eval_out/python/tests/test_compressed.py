import unittest

import h5py
import numpy as np

import stepop.eval
from tests import files
from tests.test_arrays import rows

N = 500


class CompressedTest(unittest.TestCase):
    def test_compressed_arrays_are_read_as_others_are(self):
        expected = {
            "features": rows(N, 300).astype(np.float32),
            "image": (rows(N, 3, 32, 32) % 256).astype(np.uint8),
        }
        with h5py.File(files.compressed(), "r") as f:
            for key in expected:
                stored = f["outputs"][key]
                self.assertEqual((stored.compression, stored.shuffle), ("gzip", True))
            self.assertIsNone(f["labels/loss"].chunks)
        choices = (slice(None), slice(90, 203), -1, [499, 3, 3, 96], (7, 1), (slice(5), -1))
        with stepop.eval.open(files.compressed()) as e:
            self.assertEqual((e.rows, e.complete), (N, True))
            for key, values in expected.items():
                with self.subTest(key):
                    array = e.outputs[key]
                    for chosen in choices:
                        np.testing.assert_array_equal(array[chosen], values[chosen])
                        self.assertEqual(array[chosen].dtype, values.dtype)
                    np.testing.assert_array_equal(np.stack(list(array)), values)
            np.testing.assert_array_equal(e[123]["outputs"]["features"], expected["features"][123])
            self.assertEqual(e.worst("loss", 2).tolist(), [499, 498])
