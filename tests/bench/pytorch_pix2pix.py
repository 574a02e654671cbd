"""Training steps of pix2pix in PyTorch: the networks of tests/models/pix2pix/torch_pix2pix.py, the losses and
the order of a step as NectarGAN has them, without its records, Adam.

    pytorch_pix2pix.py THREADS SIZE FEATURES N_DOWNS N_DROPOUTS BASE_CHANNELS N_LAYERS BATCH_SIZE

Answers each line "KIND STEPS" on standard input with the seconds that so many steps took. KIND is the optimizer,
adam or fused, or fused+frozen: the discriminator's parameters require no gradient in the generator's step. The
examples lie ready in memory.
"""

import pathlib
import sys
import time

import torch
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models" / "pix2pix"))
from torch_pix2pix import Generator, PatchGan  # noqa: E402

BATCHES = 4


def says(logits, what):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, what))


class Training:
    def __init__(self, kind, size, features, n_downs, n_dropouts, base, n_layers, batch_size):
        optimizer, *wanted = kind.split("+")
        self.freezes = "frozen" in wanted
        self.batches = [torch.rand(2, batch_size, 3, size, size) * 2 - 1 for _ in range(BATCHES)]
        self.generator = Generator(features, n_downs, False, False, n_dropouts)
        self.discriminator = PatchGan(base, n_layers, 512)
        fused = True if optimizer == "fused" else None
        self.of_g, self.of_d = (
            torch.optim.Adam(network.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=fused)
            for network in (self.generator, self.discriminator))

    def step(self, x, y):
        fake = self.generator(x)
        loss = 0.5 * (says(self.discriminator(x, y), 1.0) + says(self.discriminator(x, fake.detach()), 0.0))
        self.of_d.zero_grad()
        loss.backward()
        self.of_d.step()
        if self.freezes:
            self.discriminator.requires_grad_(False)
        loss = says(self.discriminator(x, fake), 1.0) + 100 * F.l1_loss(fake, y)
        self.of_g.zero_grad()
        loss.backward()
        self.of_g.step()
        self.discriminator.requires_grad_(True)

    def run(self, steps):
        start = time.perf_counter()
        for i in range(steps):
            self.step(*self.batches[i % BATCHES])
        return time.perf_counter() - start


def main():
    threads, *sizes = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trainings = {}
    for line in sys.stdin:
        kind, steps = line.split()
        if kind not in trainings:
            trainings.clear()  # the large one takes a gigabyte
            trainings[kind] = Training(kind, *sizes)
        print(trainings[kind].run(int(steps)), flush=True)


if __name__ == "__main__":
    main()
