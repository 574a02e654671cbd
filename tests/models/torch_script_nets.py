"""Exports modules for torch_script_test.cpp into the folder that is given."""

import sys

import torch
from torch import nn

folder = sys.argv[1]


class DropoutNet(nn.Module):
    """The layout of TestDropoutNet in tests/runtime/train/loop/trainer_components.cpp."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(9, 6)
        self.norm = nn.BatchNorm1d(6)
        self.dropout = nn.Dropout(0.4)
        self.last = nn.Linear(6, 3)

    def forward(self, images):
        return self.last(self.dropout(torch.relu(self.norm(self.first(images.flatten(1))))))


class Smooth(nn.Module):
    """TorchScript's optimizer gives other bits from its second call on."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(9, 32)
        self.norm = nn.LayerNorm(32)
        self.last = nn.Linear(32, 3)

    def forward(self, images):
        x = self.norm(self.first(images.flatten(1)))
        x = x * torch.sigmoid(x) + torch.tanh(x) * 0.3
        return self.last(nn.functional.gelu(x))


class Layers(nn.Module):
    """The layout of models/mlp with `inputs: 9, hidden: [6], classes: 3`."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(9, 6), nn.Linear(6, 3)])

    def forward(self, images):
        return self.layers[1](torch.relu(self.layers[0](images.flatten(1))))


class Assigning(nn.Module):
    """Assigns to a buffer after it was used, and to what is no buffer; ties two weights; has a
    weight that stays as it is."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad_(False)
        self.register_buffer("scale", torch.tensor([3.0]))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.second(self.first(x)) * self.scale
        self.scale = self.scale * 0.5
        return y


class Two(nn.Module):
    def forward(self, x, time: float):
        return x * time


class Pair(nn.Module):
    def forward(self, x):
        return x, x


class Either(nn.Module):
    def forward(self, x) -> torch.Tensor | None:
        return x if x.sum() > 0 else None


class Optional(nn.Module):
    def forward(self, x, time: float = 2.0):
        return x * time


class AssigningParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        self.weight = self.weight * 0.5
        return x * self.weight


torch.manual_seed(7)
torch.jit.script(DropoutNet()).save(folder + "/scripted.pt")
images = torch.randn(5, 1, 3, 3)
torch.jit.trace(Layers(), images).save(folder + "/traced.pt")
torch.jit.trace(DropoutNet(), images, check_trace=False).save(folder + "/traced_training.pt")
torch.jit.trace(DropoutNet().eval(), images).save(folder + "/traced_evaluation.pt")
for module in (Smooth, Assigning, Two, Pair, Either, Optional, AssigningParameter):
    torch.jit.script(module()).save(f"{folder}/{module.__name__}.pt")
torch.jit.freeze(torch.jit.script(Layers().eval())).save(folder + "/frozen.pt")

torch.save(Layers().state_dict(), folder + "/saved.pt")
torch.save(Layers().state_dict(), folder + "/old.pt", _use_new_zipfile_serialization=False)
torch.export.save(torch.export.export(Layers(), (images,)), folder + "/exported.pt2")
with open(folder + "/traced.pt", "rb") as whole, open(folder + "/cut.pt", "wb") as cut:
    cut.write(whole.read()[:3000])
with open(folder + "/empty.pt", "wb"):
    pass
