"""Datasets of PyTorch, and how fast its DataLoader reads them.

    python_datasets.py FOLDER

Writes JPEGs into the folder, says "ready", and answers each line "DATASET BATCH_SIZE BATCHES WORKERS" on
standard input with the seconds in which a DataLoader gave so many batches. Its worker processes stay between
two lines, as those of stepop do.
"""

import glob
import sys
import time

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset

JPEGS = 512


class Jpegs(Dataset):
    """Photos of about 256x256, resized and cut at a random place to 224x224."""

    def __init__(self, folder):
        self.files = sorted(glob.glob(folder + "/*.jpg"))

    def __len__(self):
        return 20 * len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index % len(self.files)]).convert("RGB").resize((240, 240), Image.BILINEAR)
        left, top = torch.randint(17, (2,)).tolist()
        image = image.crop((left, top, left + 224, top + 224))
        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float().div(255), index % 10


class Small(Dataset):
    """Images like those of MNIST that lie in memory, ready to use."""

    def __init__(self, folder):
        self.images = torch.rand(60_000, 1, 28, 28)
        self.classes = torch.arange(60_000) % 10

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.classes[index]


def write_jpegs(folder):
    random = numpy.random.default_rng(1)
    for i in range(JPEGS):
        width, height = random.integers(240, 273, 2)
        coarse = Image.fromarray(random.integers(0, 256, (24, 24, 3), "uint8")).resize((width, height), Image.BICUBIC)
        noisy = numpy.asarray(coarse) + random.normal(0, 6, (height, width, 3))
        Image.fromarray(noisy.clip(0, 255).astype("uint8")).save("%s/%04d.jpg" % (folder, i), quality=90)


def seconds(folder, loaders, name, batch_size, batches, workers):
    key = name, batch_size, batches, workers
    if key not in loaders:
        dataset = Subset(globals()[name](folder), range(batch_size * batches))
        loaders[key] = DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers,
                                  persistent_workers=workers > 0)
    begin = time.perf_counter()
    for _ in loaders[key]:
        pass
    return time.perf_counter() - begin


def main():
    folder = sys.argv[1]
    torch.set_num_threads(1)
    write_jpegs(folder)
    print("ready", flush=True)
    loaders = {}
    for line in sys.stdin:
        name, *numbers = line.split()
        print(seconds(folder, loaders, name, *map(int, numbers)), flush=True)


if __name__ == "__main__":
    main()
