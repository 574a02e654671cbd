"""A VUNet in PyTorch, written from the description of the network and not from ours: what
models/vunet is compared with.

    torch_vunet.py make FOLDER    writes plain.safetensors and normalized.safetensors: weights, inputs,
                                  outputs and gradients of small networks in mode appearance_transfer
    torch_vunet.py draw FILE OUT  computes the modes that draw random numbers, with the weights and
                                  inputs of FILE, after torch.manual_seed(7) before each
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F


class NormConv2d(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv2d(*args, **kwargs))
        channels = self.conv.out_channels
        self.gamma = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x):
        return self.gamma * self.conv(x) + self.beta


def to_depth(x):
    return torch.cat([x[..., y::2, x_::2] for y in (0, 1) for x_ in (0, 1)], dim=1)


def to_space(x):
    b, c, h, w = x.shape
    blocks = x.view(b, 2, 2, c // 4, h, w)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(b, c // 4, 2 * h, 2 * w)


class Res(nn.Module):
    def __init__(self, conv, nf, skip=False, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.conv2d = conv((1 + skip) * nf, nf, 3, padding=1)
        if skip:
            self.pre = conv(nf, nf, 1)

    def forward(self, x, skip=None):
        inner = x if skip is None else torch.cat([x, self.pre(skip)], dim=1)
        return x + self.conv2d(F.dropout(F.elu(inner), self.dropout, self.training))


class Down(nn.Module):
    def __init__(self, conv, before, after):
        super().__init__()
        self.down = conv(before, after, 3, stride=2, padding=1)

    def forward(self, x):
        return self.down(x)


class Up(nn.Module):
    def __init__(self, conv, before, after):
        super().__init__()
        self.up = conv(before, 4 * after, 3, padding=1)

    def forward(self, x):
        return to_space(self.up(x))


class Encoder(nn.Module):
    def __init__(self, conv, channels, widths):
        super().__init__()
        self.in_op = conv(channels, widths[0], 1)
        self.downs = nn.ModuleDict({f"s{i}": Down(conv, widths[i - 2], widths[i - 1])
                                    for i in range(2, len(widths) + 1)})
        self.blocks = nn.ModuleDict({f"s{i}_{k}": Res(conv, nf)
                                     for i, nf in enumerate(widths, 1) for k in (1, 2)})

    def forward(self, x):
        kept, x = {}, self.in_op(x)
        for name, block in self.blocks.items():
            stage, k = name.split("_")
            if k == "1" and stage in self.downs:
                x = self.downs[stage](x)
            kept[name] = x = block(x)
        return kept


class Posterior(nn.Module):
    def __init__(self, conv, nf, stages):
        super().__init__()
        self.last, self.before = f"s{stages}", f"s{stages - 1}"
        self.conv1x1 = conv(nf, nf, 1)
        self.blocks = nn.ModuleList(Res(conv, nf, skip=True) for _ in range(3))
        self.channel_norm = conv(2 * nf, nf, 1)
        self.up = Up(conv, nf, nf)

    def forward(self, f, draw):
        skip = f[self.last + "_1"]
        top = self.blocks[0](self.conv1x1(f[self.last + "_2"]), skip)
        z_top = draw(top)
        h = self.blocks[1](top, self.channel_norm(torch.cat([skip, z_top], 1)))
        low = to_depth(self.blocks[2](self.up(h), f[self.before + "_1"]))
        return {self.last: top, self.before: low}, {self.last: z_top, self.before: draw(low)}


class Prior(nn.Module):
    def __init__(self, conv, nf, stages):
        super().__init__()
        self.last, self.before = names = f"s{stages}", f"s{stages - 1}"
        self.conv1x1 = conv(nf, nf, 1)
        self.blocks = nn.ModuleDict({f"{s}_{k}": Res(conv, nf, skip=True)
                                     for s in names for k in (1, 2)})
        self.channel_norm = nn.ModuleDict({s: conv(2 * nf, nf, 1) for s in names})
        self.up = Up(conv, nf, nf)
        self.auto_blocks = nn.ModuleList(Res(conv, nf, skip=i > 0) for i in range(4))
        self.param_converter = conv(4 * nf, nf, 1)

    def join(self, h, z, stage, f):
        h = self.channel_norm[stage](torch.cat([h, z], 1))
        return self.blocks[stage + "_1"](h, f[stage + "_1"])

    def forward(self, f, z, draw):
        """z: of the posterior, or None."""
        top = self.blocks[self.last + "_2"](self.conv1x1(f[self.last + "_2"]), f[self.last + "_2"])
        h = self.up(self.join(top, draw(top) if z is None else z[self.last], self.last, f))
        h = self.blocks[self.before + "_2"](h, f[self.before + "_2"])

        mean = self.param_converter(to_depth(self.auto_blocks[0](h)))
        means, drawn = [mean], [draw(mean) if z is None else z[self.before].chunk(4, 1)[0]]
        for g in range(3):
            # The first block takes no skip.
            mean = self.auto_blocks[g](means[-1], *([drawn[g]] if g > 0 else []))
            means.append(mean)
            drawn.append(draw(mean) if z is None else z[self.before].chunk(4, 1)[g + 1])
        h = self.join(h, to_space(torch.cat(drawn, 1)), self.before, f)
        return h, {self.last: top, self.before: torch.cat(means, 1)}


class Decoder(nn.Module):
    def __init__(self, conv, nf, stages, tanh):
        super().__init__()
        self.tanh = tanh
        depth = {i: nf // 2 if i == 1 else nf for i in range(1, stages - 1)}
        self.ups = nn.ModuleDict({f"s{i + 1}": Up(conv, nf, depth[i]) for i in depth})
        self.blocks = nn.ModuleDict({f"s{i}_{k}": Res(conv, depth[i], skip=True)
                                     for i in depth for k in (1, 2)})
        self.order = sorted(depth, reverse=True)
        self.final_layer = conv(nf // 2, 3, 1)

    def forward(self, h, f):
        for i in self.order:
            h = self.ups[f"s{i + 1}"](h)
            for k in (2, 1):
                h = self.blocks[f"s{i}_{k}"](h, f[f"s{i}_{k}"])
        h = self.final_layer(h)
        return torch.tanh(h) if self.tanh else h


class VUNet(nn.Module):
    def __init__(self, spatial_size, nf_start, nf_max, final_act):
        super().__init__()
        conv = nn.Conv2d if final_act else NormConv2d
        stages = spatial_size.bit_length()
        widths = [min(nf_start * 2**i, nf_max) for i in range(stages)]
        self.e_theta = Encoder(conv, 3, widths)
        self.f_phi = Encoder(conv, 3, widths)
        self.zc = Posterior(conv, nf_max, stages)
        self.bottleneck = Prior(conv, nf_max, stages)
        self.decoder = Decoder(conv, nf_max, stages, final_act)

    def forward(self, pose, appearance, mode="train"):
        noisy = lambda mean: mean + torch.randn_like(mean)
        f_pose = self.e_theta(pose)
        q, z = self.zc(self.f_phi(appearance), noisy if mode == "train" else lambda mean: mean)
        h, p = self.bottleneck(f_pose, None if mode == "sample_appearance" else z, noisy)
        self.saved_tensors = {"q_means": q, "p_means": p}
        return self.decoder(h, f_pose)


def make(folder):
    from safetensors.torch import save_file

    for name, final_act in (("plain", True), ("normalized", False)):
        torch.manual_seed(3)
        net = VUNet(8, 2, 4, final_act)
        with torch.no_grad():  # so that no factor is 1 and no term is 0
            for key, parameter in net.named_parameters():
                if key.endswith(("gamma", "beta", "weight_g")):
                    parameter += 0.3 * torch.randn_like(parameter)
        pose, appearance = torch.rand(2, 2, 3, 8, 8) * 2 - 1
        direction = torch.randn(2, 3, 8, 8)
        image = net(pose, appearance, "appearance_transfer")
        saved = net.saved_tensors
        difference = sum((saved["p_means"][s] - saved["q_means"][s]).square().sum() / 2
                         for s in ("s4", "s3"))
        ((image * direction).sum() + difference).backward()

        tensors = {"pose": pose, "appearance": appearance, "direction": direction, "image": image}
        for kind, means in saved.items():
            tensors.update({f"{kind}.{stage}": mean for stage, mean in means.items()})
        for key, parameter in net.named_parameters():
            tensors["weights." + key] = parameter
            if parameter.grad is not None:
                tensors["gradients." + key] = parameter.grad
        tensors = {key: value.detach().clone() for key, value in tensors.items()}
        save_file(tensors, f"{folder}/{name}.safetensors")


def draw(path, out):
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    weights = {key[8:]: t for key, t in tensors.items() if key.startswith("weights.")}
    net = VUNet(8, 2, 4, "normalized" not in path)
    net.load_state_dict(weights)
    made = {}
    for mode in ("train", "sample_appearance"):
        torch.manual_seed(7)
        made[mode] = net(tensors["pose"], tensors["appearance"], mode).detach().contiguous()
    save_file(made, out)


if __name__ == "__main__":
    {"make": make, "draw": draw}[sys.argv[1]](*sys.argv[2:])
