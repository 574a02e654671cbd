"""Where oneDNN pays: steps of three networks with it and without it, by batch and threads.

    .venv/bin/python tests/bench/convolutions.py [SECONDS]

A step is forward, backward and SGD, in PyTorch, whose kernels are LibTorch's. Each cell is how many
times as fast the step is without oneDNN (the median of 5 rounds in turns, SECONDS each, by default
0.3); `off` behind it: `onednn: auto` leaves it out there, by the mean of multiplications
(runtime/train/checks/convolution_count.cpp).
"""

import statistics
import sys
import time

import torch
from torch import nn

FEW_MULTIPLICATIONS = 2e6
MANY_EXAMPLES = 16
BATCHES = (1, 2, 4, 8, 12, 16, 32, 64, 128)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))  # fmt: skip


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))  # fmt: skip
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        return torch.relu(self.inner(x) + self.skip(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), Block(8, 8), Block(8, 16), Block(16, 32),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))  # fmt: skip


class UNet(nn.Module):
    def __init__(self, depth=4, width=16):
        super().__init__()
        sizes = [3] + [width * 2**i for i in range(depth)]
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 4, 2, 1) for a, b in zip(sizes, sizes[1:]))  # fmt: skip
        ups = []
        for i in reversed(range(depth)):
            inputs = sizes[i + 1] * (1 if i == depth - 1 else 2)
            ups.append(nn.ConvTranspose2d(inputs, sizes[i], 4, 2, 1))
        self.up = nn.ModuleList(ups)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = torch.nn.functional.leaky_relu(layer(x), 0.2)
            kept.append(x)
        kept.pop()
        for layer in self.up:
            x = layer(x)
            if kept:
                x = torch.cat([torch.relu(x), kept.pop()], 1)
        return x


NETWORKS = {
    "LeNet, 28x28": (lenet, (1, 28, 28)),
    "ResNet of 8 to 32 channels, 32x32": (resnet, (3, 32, 32)),
    "U-Net of 16 to 128 channels, 64x64": (UNet, (3, 64, 64)),
}


def multiplications(network, x):
    """Of each convolution in a forward pass."""
    counts = []

    def count(module, inputs, output):
        outer = inputs[0] if module.transposed else output
        counts.append(outer.numel() * module.weight.numel() / module.weight.shape[0])

    hooks = [
        module.register_forward_hook(count)
        for module in network.modules()
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d))
    ]
    network(x)
    for hook in hooks:
        hook.remove()
    return counts


def measure(step, seconds):
    step()
    begin = time.perf_counter()
    steps = 0
    while time.perf_counter() - begin < seconds:
        step()
        steps += 1
    return (time.perf_counter() - begin) / steps


def ratio(make, shape, batch, seconds):
    torch.manual_seed(0)
    network = make()
    x = torch.randn(batch, *shape)
    counts = multiplications(network, x)
    optimizer = torch.optim.SGD(network.parameters(), 1e-4)

    def step():
        optimizer.zero_grad()
        network(x).square().mean().backward()
        optimizer.step()

    times = {True: [], False: []}
    for _ in range(5):
        for onednn in (True, False):
            with torch.backends.mkldnn.flags(enabled=onednn):
                times[onednn].append(measure(step, seconds))
    limit = FEW_MULTIPLICATIONS * torch.get_num_threads()
    is_off = batch < MANY_EXAMPLES and statistics.mean(counts) < limit
    gain = statistics.median(times[True]) / statistics.median(times[False])
    return f"{gain:.2f}{' off' if is_off else ''}"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
    print("| | threads | " + " | ".join(f"batch {b}" for b in BATCHES) + " |")
    print("|---" * (2 + len(BATCHES)) + "|")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for name, (make, shape) in NETWORKS.items():
            cells = [ratio(make, shape, batch, seconds) for batch in BATCHES]
            print(f"| {name} | {threads} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
