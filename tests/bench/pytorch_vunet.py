"""A VUNet's training steps in PyTorch: the network of tests/models/vunet/torch_vunet.py, the losses
color_L1 and KL, Adam.

    pytorch_vunet.py THREADS SPATIAL_SIZE NF_START BATCH_SIZE

Answers each line "KIND STEPS" on standard input with the seconds that so many steps took. KIND is the
optimizer, adam or fused, and what else is wanted: fused+bfloat16, fused+channels_last, or both. The
examples lie ready in memory.
"""

import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models" / "vunet"))
from torch_vunet import VUNet  # noqa: E402

BATCHES = 4


class Training:
    def __init__(self, kind, size, nf_start, batch_size):
        optimizer, *wanted = kind.split("+")
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled="bfloat16" in wanted)
        self.batches = [torch.rand(3, batch_size, 3, size, size) * 2 - 1 for _ in range(BATCHES)]
        self.model = VUNet(size, nf_start, 2 * nf_start, final_act=True)
        fused = True if optimizer == "fused" else None
        if "channels_last" in wanted:
            self.model.to(memory_format=torch.channels_last)
            self.batches = [[x.contiguous(memory_format=torch.channels_last) for x in batch]
                            for batch in self.batches]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=fused)

    def loss(self, pose, appearance, target):
        image = self.model(pose, appearance)
        q, p = self.model.saved_tensors["q_means"], self.model.saved_tensors["p_means"]
        kl = sum((0.5 * (p[s] - q[s]) ** 2).sum((1, 2, 3)) for s in q)
        return (10 * (image - target).abs().mean((1, 2, 3)) + 1e-4 * kl).mean()

    def run(self, steps):
        start = time.perf_counter()
        for i in range(steps):
            self.optimizer.zero_grad()
            with self.autocast:
                loss = self.loss(*self.batches[i % BATCHES])
            loss.backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    threads, *sizes = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trainings = {}
    for line in sys.stdin:
        kind, steps = line.split()
        if kind not in trainings:
            trainings[kind] = Training(kind, *sizes)
        print(trainings[kind].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
