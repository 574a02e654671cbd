"""Files of outputs that are made to harm their reader: `python hostile_files.py KIND PATH`."""

import os
import sys

import h5py
import numpy as np


def evaluation(path):
    f = h5py.File(path, "w")
    f["index"] = [0, 1]
    f["outputs/x"] = [0.0, 1.0]
    f.attrs.update(format_version=1, rows=2, complete=True, split="validation")
    return f


def cycle(f, path):
    f["outputs/self"] = f["outputs"]


def doubling(f, path):
    """25 groups, each with two links to the next: 2^25 names."""
    below = f.create_group("outputs/level0")
    for level in range(25):
        group = f.create_group(f"made{level}")
        group["a"] = group["b"] = below
        below = group
    f["outputs/top"] = below
    for level in range(25):
        del f[f"made{level}"]


def deep(f, path):
    group = f["outputs"]
    for _ in range(3000):
        group = group.create_group("g")
    group["x"] = [0.0, 1.0]


def external_link(f, path):
    os.mkfifo(path + ".fifo")
    f["outputs/link"] = h5py.ExternalLink(path + ".fifo", "/x")


def external_index(f, path):
    os.mkfifo(path + ".fifo")
    del f["index"]
    f["index"] = h5py.ExternalLink(path + ".fifo", "/x")


def soft_link(f, path):
    f["outputs/link"] = h5py.SoftLink("/outputs/x")


def bomb(f, path):
    """10 GB of zeros in chunks that deflate a thousand times, all but a few of them one chunk's
    bytes, as writing them would take a minute."""
    x = f.create_dataset("outputs/bomb", (2, 625_000_000), np.float64, chunks=(1, 12_500_000), compression="gzip",
                         compression_opts=9)
    x[0, :12_500_000] = 0
    offset = x.id.get_chunk_info(0)
    zeros = x.id.read_direct_chunk((0, 0))
    for row in range(2):
        for i in range(0, 625_000_000, 12_500_000):
            x.id.write_direct_chunk((row, i), zeros[1], zeros[0])


def big_chunk(f, path):
    """Two rows, in a chunk of 4 GB."""
    x = f.create_dataset("outputs/bomb", (2,), np.float64, maxshape=(None,), chunks=(500_000_000,),
                         compression="gzip")


def claim31(f, path):
    claim(f, 2**31)


def claim60(f, path):
    claim(f, 2**60)


def claim(f, rows):
    del f["index"], f["outputs/x"]
    f.create_dataset("index", (rows,), np.int64)
    f.create_dataset("outputs/x", (rows,), np.float64, chunks=(1024,))
    f.attrs["rows"] = np.int64(rows)


def external_storage(f, path):
    with open(path + ".secret", "wb") as secret:
        secret.write(bytes(16))
    f.create_dataset("outputs/raw", (2,), np.float64, external=[(path + ".secret", 0, 16)])


def virtual(f, path):
    with h5py.File(path + ".secret", "w") as secret:
        secret["x"] = [0.0, 1.0]
    layout = h5py.VirtualLayout((2,), np.float64)
    layout[:] = h5py.VirtualSource(path + ".secret", "x", (2,))
    f.create_virtual_dataset("outputs/virtual", layout)


def long_texts(f, path):
    """100,000 references to one text of a megabyte."""
    rows = 100_000
    del f["index"], f["outputs/x"]
    f["index"] = np.arange(rows)
    f.attrs["rows"] = rows
    text = f.create_dataset("outputs/text", (rows,), h5py.string_dtype())
    text[0] = "x" * 1_000_000
    place, size = text.id.get_offset(), text.id.get_storage_size() // rows
    f.close()
    with open(path, "r+b") as raw:
        raw.seek(place)
        reference = raw.read(size)
        raw.seek(place)
        raw.write(reference * rows)


KINDS = [cycle, doubling, deep, external_link, external_index, soft_link, bomb, big_chunk, claim31, claim60,
         external_storage, virtual, long_texts]

if __name__ == "__main__":
    kind, path = sys.argv[1:]
    f = evaluation(path)
    {made.__name__: made for made in KINDS}[kind](f, path)
    f.close()
