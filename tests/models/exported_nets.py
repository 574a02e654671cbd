"""python exported_nets.py FOLDER PACKAGE [ZOO]: exports networks, and writes what PyTorch computes with them.

For each network: NAME.pt2, and NAME.safetensors with its inputs `in.0`, its results in training and
evaluation `train.0`, `eval.0`, the gradients of the sum of squares `grad.<parameter>`, and the buffers `buffer.<name>`
that the training left. ZOO is a file with other `networks`, such as exported_zoo.py.
"""

import copy
import runpy
import sys

import torch
from safetensors.torch import save_file
from torch import nn

folder, package = sys.argv[1:3]
sys.path.insert(0, package)
from stepop.eval.export import export_both, write_programs  # noqa: E402
from stepop.eval.export_check import tensors_of  # noqa: E402


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


class Two(nn.Module):
    """Code under autocast."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(5, 4)

    def forward(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            small = self.b(y)
        return self.a(x) + 2 * small.float(), self.a(x).sum(1)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + torch.tanh(self.norm(self.conv(x)))


class Blocks(nn.Module):
    """Code under no_grad, branches, a buffer that is no state, a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4) for _ in range(3)])
        self.last = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("offset", torch.arange(4.0), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        x = x.mean((2, 3)) + self.offset
        with torch.no_grad():
            target = self.frozen(x)
            if self.training:
                self.mean.mul_(0.9).add_(0.1 * target.mean(0))
        small = self.last(x)
        x = torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))
        return x * target + small + self.mean


class Passing(nn.Module):
    """A buffer that moves and is no part of the state."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(9, 3)
        self.register_buffer("center", torch.zeros(9), persistent=False)

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            self.center.mul_(0.9).add_(0.1 * x.mean(0))
        return self.layer(x - self.center)


class Fourier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(9, 3)
        self.w = nn.Parameter(torch.randn(5, dtype=torch.cfloat))

    def forward(self, x):
        return self.layer(torch.fft.irfft(torch.fft.rfft(x.flatten(1)) * self.w, n=9))


def write(name, net, inputs):
    programs, _ = export_both(net, inputs)
    write_programs(programs, f"{folder}/{name}.pt2")
    larger = [torch.cat([each, each]) for each in inputs]  # of another batch size than the export's
    facts = {f"in.{i}": each for i, each in enumerate(larger)}
    with torch.no_grad():
        for i, each in enumerate(tensors_of(copy.deepcopy(net).eval()(*larger))):
            facts[f"eval.{i}"] = each.contiguous()
    net.train()
    torch.manual_seed(0)  # of dropout
    results = tensors_of(net(*larger))
    sum(each.square().sum() for each in results).backward()
    for i, each in enumerate(results):
        facts[f"train.{i}"] = each.detach().contiguous()
    for key, parameter in net.named_parameters(remove_duplicate=False):  # a tied one under each name
        if parameter.requires_grad and parameter.grad is not None:
            facts[f"grad.{key}"] = parameter.grad.clone()
    for key, buffer in net.named_buffers():  # as the training step left them
        facts[f"buffer.{key}"] = buffer.clone()
    save_file(facts, f"{folder}/{name}.safetensors")


def write_hidden(name, net, layer, inputs):
    """What a layer gives in both modes, by a hook, and the gradients of its sum of squares in training."""
    seen = []
    net.get_submodule(layer).register_forward_hook(lambda module, given, result: seen.append(result))
    facts = {"in.0": inputs}
    with torch.no_grad():
        copy.deepcopy(net).eval()(inputs)
        facts["eval.0"] = seen[-1].clone()
    net.train()(inputs)
    seen[-1].square().sum().backward()
    facts["train.0"] = seen[-1].detach().clone()
    for key, parameter in net.named_parameters():
        if parameter.grad is not None:
            facts[f"grad.{key}"] = parameter.grad.clone()
    for key, buffer in net.named_buffers():
        facts[f"buffer.{key}"] = buffer.clone()
    save_file(facts, f"{folder}/{name}.{layer}.safetensors")


torch.manual_seed(1)
tokens = torch.randint(0, 20, (3, 7))
networks = {"unet": lambda: (UNet(), [torch.randn(2, 3, 8, 8)]), "tied": lambda: (Tied(), [tokens]),
            "recurrent": lambda: (Recurrent(), [tokens]), "two": lambda: (Two(), [torch.randn(2, 3), torch.randn(2, 5)]),
            "drops": lambda: (DropoutNet(), [torch.randn(8, 1, 3, 3)]),
            "blocks": lambda: (Blocks(), [torch.randn(2, 4, 6, 6)])}
if len(sys.argv) > 3:
    networks = runpy.run_path(sys.argv[3])["networks"]
for name, make in networks.items():
    write(name, *make())
if len(sys.argv) <= 3:
    for layer in ("first", "middle", "middle.0", "middle.1"):
        torch.manual_seed(2)
        net = UNet()
        write_programs(export_both(net, [torch.randn(2, 3, 8, 8)])[0], f"{folder}/hidden.pt2")
        write_hidden("hidden", net, layer, torch.randn(4, 3, 8, 8))
if len(sys.argv) <= 3:  # as torch.export itself writes them
    for name, net in (("passing", Passing()), ("fourier", Fourier())):
        write_programs(export_both(net, [torch.randn(2, 1, 3, 3)])[0], f"{folder}/{name}.pt2")
