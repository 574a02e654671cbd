#!/usr/bin/env python3
"""Makes the small HDF5 files of this folder, which fuzz tests damage: needs h5py and numpy.

plain.h5 has the structures of HDF5 1.8, later.h5 those that later versions write: other indexes of
chunks, groups in heaps, check sums; dense.h5 has its attributes in a heap as well. No stepop writes
all of these.
"""

import pathlib

import h5py
import numpy as np

FOLDER = pathlib.Path(__file__).parent


def fill(f):
    random = np.random.default_rng(1)
    rows = 6
    f["index"] = np.arange(rows)
    f["outputs/logits"] = random.normal(size=(rows, 3)).astype(np.float32)
    f["outputs/half"] = random.normal(size=(rows, 2)).astype(np.float16)
    f["outputs/big_endian"] = random.normal(size=(rows, 2)).astype(">f8")
    f["outputs/deep/er/mask"] = random.normal(size=(rows, 4)) > 0
    f["outputs/complex"] = random.normal(size=rows) + 1j
    f["labels/class"] = np.arange(rows) % 3
    f["outputs/text"] = [f"a text of row {i}, which is {'long ' * i}" for i in range(rows)]
    f["fixed"] = np.array([b"aa", b"b", b"", b"dd", b"ee", b"ff"])
    f["outputs/boxes/values"] = np.arange(20).reshape(10, 2)
    f["outputs/boxes/offsets"] = [0, 2, 2, 4, 5, 9, 10]
    f["outputs/boxes"].attrs["ragged"] = True
    images = random.integers(0, 255, size=(rows, 4, 4), dtype=np.uint8)
    f.create_dataset("outputs/images", data=images, chunks=(2, 4, 4), compression="gzip", shuffle=True)
    f.create_dataset("outputs/sums", data=images, chunks=(1, 4, 2), fletcher32=True)
    f.create_dataset("outputs/scaled", data=images.astype(np.int32), chunks=(3, 4, 4), scaleoffset=True)
    f.create_dataset("outputs/grows", data=images, chunks=(2, 4, 4), maxshape=(None, 4, None))
    f.create_dataset("outputs/longer", data=images, chunks=(1, 4, 4), maxshape=(None, 4, 4))
    f.create_dataset("outputs/captions", data=[f"caption {i}" for i in range(rows)], dtype=h5py.string_dtype(),
                     chunks=(4,), compression="gzip")
    f.attrs.update(format_version=1, rows=rows, complete=True, global_step=12, split="validation",
                   config="model: {class: LeNet}\ndatasets: {validation: {class: Idx}}\n", git="none")


# So many attributes that they need a place of their own: a heap, in later versions.
for name, versions, notes in [("plain", ("earliest", "v108"), 12), ("later", ("v110", "v110"), 1),
                              ("dense", ("v110", "v110"), 2)]:
    with h5py.File(FOLDER / f"{name}.h5", "w", libver=versions) as f:
        fill(f)
        for i in range(notes):
            f.attrs[f"note {i}"] = "text " * i
