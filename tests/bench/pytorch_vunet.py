"""A VUNet's training steps in PyTorch: the network of tests/models/vunet/torch_vunet.py, the losses
color_L1 and KL, Adam.

    pytorch_vunet.py THREADS SPATIAL_SIZE NF_START BATCH_SIZE

Answers each line "OPTIMIZER STEPS" on standard input, where OPTIMIZER is adam or fused, with the seconds
that so many steps took. The examples lie ready in memory.
"""

import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models" / "vunet"))
from torch_vunet import VUNet  # noqa: E402

BATCHES = 4


class Training:
    def __init__(self, optimizer, size, nf_start, batch_size):
        self.batches = [torch.rand(3, batch_size, 3, size, size) * 2 - 1 for _ in range(BATCHES)]
        self.model = VUNet(size, nf_start, 2 * nf_start, final_act=True)
        fused = True if optimizer == "fused" else None
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
            self.loss(*self.batches[i % BATCHES]).backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    threads, *sizes = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trainings = {}
    for line in sys.stdin:
        optimizer, steps = line.split()
        if optimizer not in trainings:
            trainings[optimizer] = Training(optimizer, *sizes)
        print(trainings[optimizer].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
