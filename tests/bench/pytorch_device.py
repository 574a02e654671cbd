"""Training steps in PyTorch on a GPU: the networks of device_bench.cpp, Adam.

    pytorch_device.py DEVICE CASE BATCH_SIZE

CASE is lenet, resnet18, transformer or vunet. Answers each line "KIND STEPS" on standard input with the seconds that so
many steps took. KIND is the optimizer, adam or fused, and what else is wanted: +bfloat16, +channels_last, +compile
(torch.compile) and +graph (the step in a CUDA graph). The batches lie ready in pinned memory and are copied to the device
in each step without a wait.
"""

import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

here = pathlib.Path(__file__).parent
sys.path[:0] = [str(here), str(here.parent / "models" / "vunet")]
from exported_nets import LeNet, ResNet18  # noqa: E402
from torch_vunet import VUNet  # noqa: E402

BATCHES = 4
WIDTH = 768


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        qkv = self.qkv(F.layer_norm(x, (WIDTH,))).view(x.shape[0], x.shape[1], 3, WIDTH // 64, 64)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(F.layer_norm(x, (WIDTH,)))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(12)))
        self.logits = nn.Linear(WIDTH, 10)

    def forward(self, tokens):
        return self.logits(F.layer_norm(self.blocks(tokens), (WIDTH,)).mean(1))


class Training:
    def __init__(self, kind, device, case, batch_size):
        optimizer, *wanted = kind.split("+")
        self.device = device
        self.autocast = torch.autocast(device, torch.bfloat16, enabled="bfloat16" in wanted)
        make, shape = {"lenet": (LeNet, (1, 28, 28)), "resnet18": (ResNet18, (3, 224, 224)),
                       "transformer": (Transformer, (256, WIDTH)), "vunet": (None, (3, 256, 256))}[case]
        self.is_vunet = case == "vunet"
        self.net = (VUNet(256, 32, 64, final_act=True) if self.is_vunet else make()).to(device)
        self.batches = [self.batch(batch_size, shape) for _ in range(BATCHES)]
        if "channels_last" in wanted:
            self.net.to(memory_format=torch.channels_last)
            self.batches = [[x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in batch]
                            for batch in self.batches]
        if device != "cpu":
            self.batches = [[x.pin_memory() for x in batch] for batch in self.batches]
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True if optimizer == "fused" else None,
                                          capturable="graph" in wanted)
        self.forward = torch.compile(self.loss) if "compile" in wanted else self.loss
        self.step = self.captured() if "graph" in wanted and device != "cpu" else self.eager_step

    def batch(self, size, shape):
        images = torch.rand(size, *shape) * 2 - 1
        if self.is_vunet:
            return [images, torch.rand(size, *shape) * 2 - 1, torch.rand(size, *shape) * 2 - 1]
        return [images, torch.arange(size) % 10]

    def loss(self, images, *rest):
        if not self.is_vunet:
            return F.cross_entropy(self.net(images), rest[0])
        appearance, target = rest
        image = self.net(images, appearance)
        q, p = self.net.saved_tensors["q_means"], self.net.saved_tensors["p_means"]
        kl = sum((0.5 * (p[s] - q[s]) ** 2).sum((1, 2, 3)) for s in q)
        return (10 * (image - target).abs().mean((1, 2, 3)) + 1e-4 * kl).mean()

    def update(self, batch):
        self.optimizer.zero_grad()
        with self.autocast:
            loss = self.forward(*batch)
        loss.backward()
        self.optimizer.step()

    def eager_step(self, batch):
        self.update([x.to(self.device, non_blocking=True) for x in batch])

    def captured(self):
        """The step in a graph, as PyTorch's documentation of CUDA graphs has it."""
        inputs = [x.to(self.device) for x in self.batches[0]]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.update(inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with torch.cuda.graph(graph):
            self.update(inputs)

        def step(batch):
            for own, other in zip(inputs, batch):
                own.copy_(other, non_blocking=True)
            graph.replay()

        return step

    def run(self, steps):
        start = time.perf_counter()
        for i in range(steps):
            self.step(self.batches[i % BATCHES])
        if self.device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def main():
    device, case, batch_size = sys.argv[1:]
    torch.manual_seed(1)
    trainings = {}
    for line in sys.stdin:
        kind, steps = line.split()
        if kind not in trainings:
            trainings[kind] = Training(kind, device, case, int(batch_size))
        print(trainings[kind].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
