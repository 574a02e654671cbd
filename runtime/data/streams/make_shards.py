"""Packs examples into shards, tar files in webdataset's layout, in a random order.

    python make_shards.py FOLDER OUT              # one folder of images for each class, as ImageFolder
    python make_shards.py --idx IMAGES LABELS OUT # MNIST's format, gzip or not

A file beside an image with the same name up to its first dot (17.txt, 17.json) goes along. OUT gets
shard-000000.tar and so on, of --examples each, and classes.txt, the names of the classes in the order
of their numbers, by which other splits find the same classes. Needs nothing but Python.
"""
import argparse
import gzip
import io
import os
import random
import struct
import tarfile
import zlib

IMAGES = (".png", ".jpg", ".jpeg")


def png(width, height, rows):
    """A grey PNG; `rows` are the bytes of each."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def examples_of_idx(images_file, labels_file):
    images, labels = read(images_file), read(labels_file)[8:]
    count, height, width = struct.unpack(">III", images[4:16])
    for i in range(count):
        at = 16 + i * height * width
        rows = [images[at + y * width:at + (y + 1) * width] for y in range(height)]
        yield f"{i:08d}", lambda rows=rows, i=i: {"png": png(width, height, rows), "cls": b"%d" % labels[i]}


def class_names(folder):
    return sorted(name for name in os.listdir(folder)
                  if os.path.isdir(os.path.join(folder, name)) and not name.startswith("."))


def examples_of_folder(folder):
    classes = class_names(folder)
    for number, name in enumerate(classes or ["."]):
        for root, _, files in os.walk(os.path.join(folder, name)):
            by_key = {}
            for file in sorted(files):
                key, dot, extension = file.partition(".")
                if key and dot:
                    by_key.setdefault(key, {})[extension] = os.path.join(root, file)
            for key, paths in by_key.items():
                if not any(path.lower().endswith(IMAGES) for path in paths.values()):
                    continue

                def load(paths=paths, number=number):
                    parts = {extension: read(path) for extension, path in paths.items()}
                    if classes:
                        parts.setdefault("cls", b"%d" % number)
                    return parts

                relative = os.path.relpath(os.path.join(root, key), folder)
                yield relative.replace(os.sep, "/"), load


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--idx", nargs=2, metavar=("IMAGES", "LABELS"))
    parser.add_argument("--examples", type=int, default=1000, help="in each shard (1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("places", nargs="+", metavar="FOLDER OUT")
    given = parser.parse_args()
    if len(given.places) != (1 if given.idx else 2):
        parser.error("expected a folder and OUT, or --idx IMAGES LABELS and OUT")
    if given.examples < 1:
        parser.error("--examples: expected at least 1")
    out = given.places[-1]
    found = list(examples_of_idx(*given.idx) if given.idx else examples_of_folder(given.places[0]))
    if not found:
        raise SystemExit(f"{given.places[0]}: no images are there")
    random.Random(given.seed).shuffle(found)
    os.makedirs(out, exist_ok=True)
    for first in range(0, len(found), given.examples):
        path = os.path.join(out, f"shard-{first // given.examples:06d}.tar")
        with tarfile.open(path + ".part", "w", format=tarfile.GNU_FORMAT) as shard:
            for key, load in found[first:first + given.examples]:
                for extension, content in sorted(load().items()):
                    member = tarfile.TarInfo(f"{key}.{extension}")
                    member.size = len(content)
                    shard.addfile(member, io.BytesIO(content))
        os.replace(path + ".part", path)
    names = [] if given.idx else class_names(given.places[0])
    if names:
        with open(os.path.join(out, "classes.txt"), "w", encoding="utf-8") as file:
            file.write("".join(name + "\n" for name in names))
    print(f"examples: {len(found)}")


if __name__ == "__main__":
    main()
