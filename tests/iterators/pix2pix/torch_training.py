"""Three steps of pix2pix in PyTorch with all losses of `extended+vgg`, one network step after the other.

    torch_training.py FILE    tests/data/pix2pix/training.safetensors was made by it

The networks are those of tests/models/pix2pix/torch_pix2pix.py, VGG19 that of tests/data/vgg19/thin.safetensors.
FILE has the batches, the weights before and after, and each loss of each step before its weight.
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

TESTS = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(TESTS / "models" / "pix2pix"))
from torch_pix2pix import Generator, PatchGan  # noqa: E402

STEPS = 3
WEIGHTS = {"G_GAN": 1, "G_L1": 100, "G_L2": 5, "G_SOBEL": 3, "G_LAP": 2, "G_VGG": 10}
VGG = load_file(TESTS / "data" / "vgg19" / "thin.safetensors")


def vgg_layers(x):
    layers = []
    for place in (0, 2, 5, 7, 10, 12, 14):
        if place in (5, 10):
            x = F.max_pool2d(x, 2)
        x = F.relu(F.conv2d(x, VGG[f"features.{place}.weight"], VGG[f"features.{place}.bias"], padding=1))
        if place in (2, 7, 14):
            layers.append(x)
    return layers


def filtered(image, kernel):
    return F.conv2d(image.mean(1, keepdim=True), torch.tensor(kernel)[None, None], padding=1)


def sobel(image):
    kernel = [[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]
    x = filtered(image, kernel)
    y = filtered(image, [list(row) for row in zip(*kernel)])
    return torch.sqrt(x**2 + y**2 + 1e-6)


def laplacian(image):
    return filtered(image, [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])


def says(logits, what):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, what))


def main():
    torch.manual_seed(3)
    generator, discriminator = Generator(2, 1, False, False), PatchGan(2, 2, 4)
    of_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    of_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    tensors = {"input": torch.rand(STEPS, 2, 3, 16, 16) * 2 - 1, "target": torch.rand(STEPS, 2, 3, 16, 16) * 2 - 1}
    stored = {name: tensor.clone() for name, tensor in tensors.items()}

    def store(when):
        for name, network in (("generator", generator), ("discriminator", discriminator)):
            for key, value in network.state_dict().items():
                stored[f"{when}.{name}.{key}"] = value.clone()

    store("before")
    for step, (x, y) in enumerate(zip(tensors["input"], tensors["target"])):
        fake = generator(x)
        losses = {"D_real": says(discriminator(x, y), 0.9), "D_fake": says(discriminator(x, fake.detach()), 0.0)}
        of_d.zero_grad()
        (0.5 * sum(losses.values())).backward()
        of_d.step()
        of_generator = {
            "G_GAN": says(discriminator(x, fake), 1.0),
            "G_L1": F.l1_loss(fake, y),
            "G_L2": F.mse_loss(fake, y),
            "G_SOBEL": F.l1_loss(sobel(fake), sobel(y)),
            "G_LAP": F.l1_loss(laplacian(fake), laplacian(y)),
            "G_VGG": sum(F.l1_loss(a, b) for a, b in zip(vgg_layers(fake), vgg_layers(y))),
        }
        of_g.zero_grad()
        sum(WEIGHTS[name] * loss for name, loss in of_generator.items()).backward()
        of_g.step()
        for name, loss in (losses | of_generator).items():
            stored[f"loss.{step}.{name}"] = loss.detach()
    store("after")
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, sys.argv[1])


if __name__ == "__main__":
    main()
