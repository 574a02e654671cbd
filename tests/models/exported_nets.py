"""python exported_nets.py FOLDER PACKAGE: exports networks, and writes what PyTorch computes with them.

drops.pt2, frozen.pt2 and constant.pt2 have no results. For each other network: NAME.pt2, and NAME.safetensors with its inputs `in.0`, its results in training and
evaluation `train.0`, `eval.0`, and the gradients of the sum of squares `grad.<parameter>`.
"""

import copy
import sys

import torch
from safetensors.torch import save_file
from torch import nn

folder, package = sys.argv[1:3]
sys.path.insert(0, package)
from stepop_eval.export import export_both, package_pt2_of  # noqa: E402


class UNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.GroupNorm(2, width), nn.SiLU())
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.middle = nn.Sequential(nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width),
                                    nn.LeakyReLU(0.1, inplace=True))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last = nn.Conv2d(2 * width, 3, 1)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        a = self.first(x)
        middle = nn.functional.interpolate(self.middle(self.down(a)), scale_factor=1.0)
        return self.last(torch.cat([self.up(middle), a], 1)) * self.scale + x.shape[-1] / 100


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.attend = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, 50, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        count = tokens.shape[1]
        mask = torch.triu(torch.ones(count, count, dtype=torch.bool, device=tokens.device), 1)
        return self.out(self.attend(self.embed(tokens), src_mask=mask))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 12, 2, batch_first=True)
        self.out = nn.Linear(12, 5)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0][:, -1])


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


class Frozen(nn.Module):
    """A weight that is not trained, and constants that are no state."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.a.weight.requires_grad_(False)
        self.register_buffer("table", torch.arange(3.0), persistent=False)

    def forward(self, x):
        return self.b(self.a(x)) + self.table + torch.tensor([1.0, 2.0, 3.0])


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(3.0), persistent=False)

    def forward(self, x):
        return x + self.table


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(5, 4)

    def forward(self, x, y):
        return self.a(x) + 2 * self.b(y), self.a(x).sum(1)


torch.manual_seed(1)
for name, net, shape in (("drops", DropoutNet(), [2, 1, 3, 3]), ("frozen", Frozen(), [2, 3]),
                         ("constant", Constant(), [2, 3])):
    package_pt2_of(export_both(net, [torch.randn(shape)])[0], f"{folder}/{name}.pt2")
tokens = torch.randint(0, 20, (3, 7))
networks = {"unet": (UNet(), [torch.randn(2, 3, 8, 8)]), "tied": (Tied(), [tokens]),
            "recurrent": (Recurrent(), [tokens]), "two": (Two(), [torch.randn(2, 3), torch.randn(2, 5)])}
for name, (net, inputs) in networks.items():
    programs, _ = export_both(net, inputs)
    package_pt2_of(programs, f"{folder}/{name}.pt2")
    larger = [torch.cat([each, each]) for each in inputs]  # of another batch size than the export's
    facts = {f"in.{i}": each for i, each in enumerate(larger)}
    results = copy.deepcopy(net).eval()(*larger)
    for i, each in enumerate(results if isinstance(results, tuple) else [results]):
        facts[f"eval.{i}"] = each.detach().contiguous()
    net.train()
    results = net(*larger)
    results = results if isinstance(results, tuple) else (results,)
    sum(each.square().sum() for each in results).backward()
    for i, each in enumerate(results):
        facts[f"train.{i}"] = each.detach().contiguous()
    for key, parameter in net.named_parameters(remove_duplicate=False):  # a tied one under each name
        facts[f"grad.{key}"] = parameter.grad.clone()
    for key, buffer in net.named_buffers():  # as the training step left them
        facts[f"buffer.{key}"] = buffer
    save_file(facts, f"{folder}/{name}.safetensors")
