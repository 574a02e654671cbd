"""Writes outputs of an evaluation as a script of one's own would, on demand.

A line `how|what|count|batch size|path` is answered with the seconds that it took.
"""

import os
import shutil
import sys
import time

import h5py
import numpy as np


def make_batch(what, size):
    random = np.random.default_rng(0)
    if what == "small":
        return random.standard_normal((size, 10), dtype=np.float32)
    if what == "float image":
        return random.standard_normal((size, 3, 256, 256), dtype=np.float32)
    if what == "uint8 image":
        return random.integers(0, 256, (size, 3, 256, 256), dtype=np.uint8)
    return [random.standard_normal((i % 20, 4), dtype=np.float32) for i in range(size)]


def append(dataset, values):
    begin = len(dataset)
    dataset.resize(begin + len(values), axis=0)
    dataset[begin:] = values


def append_all(batch, count, path):
    """One file whose arrays grow batch by batch."""
    is_ragged = isinstance(batch, list)
    first = np.concatenate(batch) if is_ragged else batch
    with h5py.File(path, "w") as f:
        values = f.create_dataset(
            "values", (0, *first.shape[1:]), first.dtype, maxshape=(None, *first.shape[1:])
        )
        lengths = f.create_dataset("lengths", (0,), np.int64, maxshape=(None,))
        for _ in range(0, count, len(batch)):
            if is_ragged:
                append(lengths, [len(example) for example in batch])
                append(values, np.concatenate(batch))
            else:
                append(values, batch)


def save_files(batch, count, path):
    """A file per example, as edflow has it."""
    os.mkdir(path)
    for i in range(count):
        np.save(f"{path}/{i:06d}.npy", batch[i % len(batch)])


def main():
    batches = {}
    for line in sys.stdin:
        how, what, count, size, path = line.rstrip("\n").split("|")
        batch = batches.setdefault((what, size), make_batch(what, int(size)))
        path += ".python"
        begin = time.perf_counter()
        (append_all if how == "append" else save_files)(batch, int(count), path)
        print(time.perf_counter() - begin, flush=True)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


if __name__ == "__main__":
    main()
