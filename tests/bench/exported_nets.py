"""LeNet and ResNet-18: exported for stepop, and trained by PyTorch's own loop.

    exported_nets.py FOLDER

Writes FOLDER/lenet.pt2 and FOLDER/resnet18.pt2, says "ready", and answers each line "NETWORK OPTIMIZER THREADS STEPS"
on standard input, where OPTIMIZER is adam or fused, with the seconds that so many steps of 4 examples took. The
batches lie in memory, ready to use.
"""

import contextlib
import os
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, max_pool2d, relu

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../eval_out/python"))
from stepop.eval import export  # noqa: E402

BATCH, BATCHES, CLASSES = 4, 100, 10


class LeNet(nn.Module):
    """As models/lenet."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, CLASSES)

    def forward(self, images):
        x = max_pool2d(relu(self.conv1(images)), 2)
        x = max_pool2d(relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(relu(self.fc2(relu(self.fc1(x)))))


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 3)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """He et al., "Deep Residual Learning for Image Recognition", 2015, as torchvision has it."""

    def __init__(self):
        super().__init__()
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        blocks = []
        for inputs, outputs in ((64, 64), (64, 128), (128, 256), (256, 512)):
            blocks += [Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1)]
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, CLASSES)

    def forward(self, images):
        x = max_pool2d(relu(self.bn1(self.conv1(images))), 3, 2, 1)
        return self.fc(nn.functional.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


NETWORKS = {"lenet": (LeNet, (1, 28, 28)), "resnet18": (ResNet18, (3, 64, 64))}


class Training:
    def __init__(self, name, optimizer):
        make, shape = NETWORKS[name]
        self.batches = [(torch.rand(BATCH, *shape) * 2 - 1, torch.arange(BATCH) % CLASSES) for _ in range(BATCHES)]
        self.net = make()
        fused = True if optimizer == "fused" else None
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=fused)
        self.next = 0

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            images, classes = self.batches[self.next % BATCHES]
            self.next += 1
            self.optimizer.zero_grad()
            cross_entropy(self.net(images), classes).backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    torch.manual_seed(1)
    with contextlib.redirect_stdout(sys.stderr):
        for name, (make, shape) in NETWORKS.items():
            sizes = ",".join(map(str, (BATCH, *shape)))
            export.main([f"{__file__}:{make.__name__}", "--example", f"image={sizes}", "-o",
                         f"{sys.argv[1]}/{name}.pt2"])
    print("ready", flush=True)
    trainings = {}
    for line in sys.stdin:
        name, optimizer, threads, steps = line.split()
        if (name, optimizer) not in trainings:
            trainings[name, optimizer] = Training(name, optimizer)
        torch.set_num_threads(int(threads))
        print(trainings[name, optimizer].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
