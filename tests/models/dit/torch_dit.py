"""The diffusion transformer of facebookresearch/DiT in PyTorch, written after its paper, and values of
small ones.

    torch_dit.py FOLDER

writes FOLDER/<variant>.safetensors: `weights.*`, the inputs, the output, and the gradients of its sum
times `direction`. tests/data/dit has what it wrote.
"""

import math
import pathlib
import sys

import numpy
import torch
from safetensors.torch import save_file
from torch import nn


class Holder(nn.Module):
    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


def places(width, rows, columns):
    def of(numbers, size):
        omega = 1 / 10000 ** (numpy.arange(size // 2) / (size / 2))
        angles = numpy.outer(numbers, omega)
        return numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], axis=1)

    x, y = numpy.meshgrid(numpy.arange(columns, dtype=float), numpy.arange(rows, dtype=float))
    both = numpy.concatenate([of(x.reshape(-1), width // 2), of(y.reshape(-1), width // 2)], axis=1)
    return torch.tensor(both, dtype=torch.float32)[None]


def modulate(x, shift, scale):
    x = nn.functional.layer_norm(x, x.shape[-1:], eps=1e-6)
    return x * (1 + scale[:, None]) + shift[:, None]


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.attn = Holder(qkv=nn.Linear(width, 3 * width), proj=nn.Linear(width, width))
        self.mlp = Holder(fc1=nn.Linear(width, hidden), fc2=nn.Linear(hidden, width))
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def attention(self, x):
        b, t, d = x.shape
        q, k, v = self.attn.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)).softmax(-1)
        return self.attn.proj((weights @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(c).chunk(6, 1)
        x = x + gate1[:, None] * self.attention(modulate(x, shift1, scale1))
        h = nn.functional.gelu(self.mlp.fc1(modulate(x, shift2, scale2)), approximate="tanh")
        return x + gate2[:, None] * self.mlp.fc2(h)


class DiT(nn.Module):
    def __init__(self, size, channels, patch, width, depth, heads, classes):
        super().__init__()
        self.patch, self.rows, self.columns = patch, size[0] // patch, size[1] // patch
        self.channels = channels
        self.x_embedder = Holder(proj=nn.Conv2d(channels, width, patch, patch))
        self.t_embedder = Holder(mlp=nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width)))
        if classes:
            self.y_embedder = Holder(embedding_table=nn.Embedding(classes + 1, width))
        self.register_buffer("pos_embed", places(width, self.rows, self.columns))
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(depth))
        self.final_layer = Holder(
            linear=nn.Linear(width, patch * patch * channels),
            adaLN_modulation=nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width)))

    def forward(self, x, t, y=None):
        frequencies = torch.exp(-math.log(10000) * torch.arange(128, dtype=torch.float32) / 128)
        angles = t[:, None].float() * frequencies[None]
        c = self.t_embedder.mlp(torch.cat([angles.cos(), angles.sin()], -1))
        if y is not None:
            c = c + self.y_embedder.embedding_table(y)
        x = self.x_embedder.proj(x).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.final_layer.adaLN_modulation(c).chunk(2, 1)
        x = self.final_layer.linear(modulate(x, shift, scale))
        p = self.patch
        x = x.reshape(len(x), self.rows, self.columns, p, p, self.channels)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(len(x), self.channels, self.rows * p, self.columns * p)


def write(path, classes, **options):
    torch.manual_seed(0)
    model = DiT(classes=classes, **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, 0, 0.1)
    x = torch.randn(3, options["channels"], *options["size"])
    t = torch.tensor([0.0, 420.5, 1000.0])
    y = torch.tensor([0, classes, 1]) if classes else None
    output = model(x, t, y)
    direction = torch.randn_like(output)
    (output * direction).sum().backward()
    tensors = {"inputs.x": x, "inputs.timesteps": t, "output": output.detach(), "direction": direction}
    if classes:
        tensors["inputs.y"] = y
    tensors |= {"weights." + name: tensor.clone() for name, tensor in model.state_dict().items()}
    tensors |= {"gradients." + name: p.grad for name, p in model.named_parameters()}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, str(path))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "classes.safetensors", 3, size=(4, 6), channels=1, patch=2, width=8, depth=2, heads=2)
    write(folder / "plain.safetensors", 0, size=(3, 3), channels=2, patch=1, width=4, depth=1, heads=1)
