"""A plain PyTorch training loop: LeNet on 28x28 images, Adam, DataLoader.

    pytorch_loop.py THREADS

Answers each line "OPTIMIZER BATCH_SIZE STEPS" on standard input, where OPTIMIZER is adam or fused,
with the seconds that so many steps took. The examples are float tensors that lie in memory, ready to
use, and the DataLoader has no worker processes, which for such data are slower.
"""

import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, max_pool2d, relu
from torch.utils.data import DataLoader, TensorDataset

EXAMPLES = 10_000


class LeNet(nn.Module):
    """As models/lenet."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, images):
        x = max_pool2d(relu(self.conv1(images)), 2)
        x = max_pool2d(relu(self.conv2(x)), 2).flatten(1)
        x = relu(self.fc1(x))
        x = relu(self.fc2(x))
        return self.fc3(x)


class Training:
    def __init__(self, optimizer, batch_size):
        data = TensorDataset(torch.rand(EXAMPLES, 1, 28, 28) * 2 - 1, torch.arange(EXAMPLES) % 10)
        self.loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
        self.batches = iter(self.loader)
        self.model = LeNet()
        fused = True if optimizer == "fused" else None
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=fused)

    def next_batch(self):
        try:
            return next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            return next(self.batches)

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            images, classes = self.next_batch()
            self.optimizer.zero_grad()
            loss = cross_entropy(self.model(images), classes)
            loss.backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    trainings = {}
    for line in sys.stdin:
        optimizer, batch_size, steps = line.split()
        key = optimizer, int(batch_size)
        if key not in trainings:
            trainings[key] = Training(*key)
        print(trainings[key].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
