#!/usr/bin/env python3
"""Exports scikit-learn's 8x8 handwritten digits to IDX files in this folder.

    python export_digits.py [FOLDER]

The split is fixed: of each class, in the order of the set, every fifth image goes to the test
split, the others to the train split; each split keeps the order of the set. The files are the same
bytes whenever it runs, up to the compression of another zlib; the sums that it prints are of their
unpacked content.
"""

import gzip
import hashlib
import pathlib
import struct
import sys

import numpy as np
from sklearn.datasets import load_digits


def idx_bytes(array):
    """`array` of uint8 in MNIST's IDX format."""
    assert array.dtype == np.uint8
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 0x08, array.ndim, *array.shape)
    return header + array.tobytes()


def is_test(labels):
    """Whether each example belongs to the test split: every fifth of its class."""
    position = np.zeros(len(labels), dtype=np.int64)
    for digit in range(10):
        of_digit = labels == digit
        position[of_digit] = np.arange(of_digit.sum())
    return position % 5 == 4


def main(folder):
    digits = load_digits()
    counts = digits.images.astype(np.int64)  # 0 .. 16: ink in blocks of 4x4 pixels
    assert counts.shape == (1797, 8, 8) and counts.min() == 0 and counts.max() == 16
    images = ((counts * 255 + 8) // 16).astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    test = is_test(labels)
    for split, members in (("train", ~test), ("test", test)):
        for what, array in (("images", images[members]), ("labels", labels[members])):
            content = idx_bytes(array)
            path = folder / f"digits-{split}-{what}.idx.gz"
            with open(path, "wb") as file:
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    packed.write(content)
            print(hashlib.sha256(content).hexdigest(), path.name, array.shape)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
