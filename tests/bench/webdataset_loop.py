"""Examples per second of Python's webdataset over shards of PNGs with classes, in one process.

    pip install webdataset pillow; python webdataset_loop.py SHARDS BUFFER

Reads each pass in batches of 64, as `build/stepop_bench loader` reads its shards with one worker, and prints the median of 7 passes.
"""
import glob
import os
import statistics
import sys
import time

import numpy as np
import torch
import webdataset as wds

BATCH = 64


def image(sample):
    sample["png"] = torch.from_numpy(np.array(sample["png"])).permute(2, 0, 1).float() / 127.5 - 1
    return sample


def main():
    folder, buffer = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    shards = sorted(glob.glob(os.path.join(folder, "*.tar")))
    rates = []
    for _ in range(7):
        data = wds.WebDataset(shards, shardshuffle=False, empty_check=False)
        if buffer > 1:
            data = data.shuffle(buffer, initial=buffer)
        data = data.decode("pil").map(image).to_tuple("png", "cls").batched(BATCH)
        begin = time.perf_counter()
        count = sum(len(images) for images, _ in data)
        rates.append(count / (time.perf_counter() - begin))
    print(f"{statistics.median(rates):.0f} examples/s")


if __name__ == "__main__":
    main()
