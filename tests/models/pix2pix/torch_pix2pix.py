"""The networks of pix2pix in PyTorch, in the variants that NectarGAN has, and values of small ones.

    [PYTHONPATH=<NectarGAN v0.2.3>] torch_pix2pix.py FOLDER

writes FOLDER/<variant>.safetensors: `weights.*`, the inputs, the output in evaluation mode, and the
gradients of its sum times `direction`. tests/data/pix2pix has what it wrote. nectargan_* are made
by NectarGAN's own generator, where that is installed.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F


def reflected(conv, x):
    return conv(F.pad(x, (1, 1, 1, 1), mode="reflect"))


class Block(nn.Module):
    def __init__(self, n_in, n_out, down, norm, bias, activation, residual, bilinear):
        super().__init__()
        self.down, self.norm, self.activation, self.bilinear = down, norm, activation, bilinear
        if down:
            self.conv = nn.ModuleDict({"0": nn.Conv2d(n_in, n_out, 4, 2, bias=bias)})
        elif bilinear:
            self.conv = nn.ModuleDict({"2": nn.Conv2d(n_in, n_out, 3)})
        else:
            self.conv = nn.ModuleDict({"0": nn.ConvTranspose2d(n_in, n_out, 4, 2, 1, bias=bias)})
        self.has_residual = residual
        if residual and (down or n_in != n_out):
            self.residual = nn.ModuleDict(
                {"0": nn.Conv2d(n_in, n_out, 1, 2) if down
                 else nn.ConvTranspose2d(n_in, n_out, 1, 2, output_padding=1)})

    def forward(self, x, is_last=False):
        if self.down:
            y = reflected(self.conv["0"], x)
        elif self.bilinear:
            y = reflected(self.conv["2"], F.interpolate(x, scale_factor=2, mode="bilinear"))
        else:
            y = self.conv["0"](x)
        if self.norm:
            y = F.instance_norm(y)
        if not self.has_residual:
            return self.activation(y)
        more = (F.relu(self.residual["0"](x)) if hasattr(self, "residual")
                else F.interpolate(x, scale_factor=2))
        return self.activation(y + more) if is_last else self.activation(y) + more


class Generator(nn.Module):
    def __init__(self, features, n_downs, residual, bilinear, n_dropouts=0):
        super().__init__()
        self.n_dropouts = n_dropouts
        widths = [features]
        for _ in range(n_downs):
            widths.append(min(2 * widths[-1], 8 * features))
        kind = {"residual": residual, "bilinear": bilinear}
        leaky = nn.LeakyReLU(0.2)
        self.initial_down = Block(3, features, True, False, True, leaky, **kind)
        self.downs = nn.ModuleList(
            Block(a, b, True, True, False, leaky, **kind) for a, b in zip(widths, widths[1:]))
        self.bottleneck = Block(widths[-1], widths[-1], True, False, True, nn.ReLU(), **kind)
        self.ups = nn.ModuleList([Block(widths[-1], widths[-1], False, True, False, nn.ReLU(), **kind)])
        for a, b in zip(widths[::-1], widths[-2::-1]):
            self.ups.append(Block(2 * a, b, False, True, False, nn.ReLU(), **kind))
        self.final_up = Block(2 * features, 3, False, False, True, nn.Tanh(), **kind)

    def forward(self, x):
        skips = [self.initial_down(x)]
        for down in self.downs:
            skips.append(down(skips[-1]))
        x = self.bottleneck(skips[-1])
        for i, up in enumerate(self.ups):
            x = up(x if i == 0 else torch.cat([x, skips[-i]], 1))
            if i < self.n_dropouts:
                x = F.dropout(x, 0.5, self.training)
        return self.final_up(torch.cat([x, skips[0]], 1), is_last=True)


class PatchGan(nn.Module):
    def __init__(self, base, n_layers, most):
        super().__init__()
        self.model = nn.ModuleDict({"0": nn.Conv2d(6, base, 4, 2)})
        width = base
        for i in range(1, n_layers):
            wider = min(2 * width, most)
            stride = 1 if i == n_layers - 1 else 2
            self.model[str(i + 1)] = nn.ModuleDict(
                {"conv": nn.ModuleDict({"0": nn.Conv2d(width, wider, 4, stride, bias=False)})})
            width = wider
        self.model[str(n_layers + 1)] = nn.Conv2d(width, 1, 4)

    def forward(self, x, y):
        *layers, last = self.model.values()
        x = F.leaky_relu(reflected(layers[0], torch.cat([x, y], 1)), 0.2)
        for layer in layers[1:]:
            x = F.leaky_relu(F.instance_norm(reflected(layer["conv"]["0"], x)), 0.2)
        return reflected(last, x)


def store(network, inputs, path):
    """Computed in float64 from float32 weights and inputs, stored as float32."""
    network.double().eval()
    inputs = {name: value.double() for name, value in inputs.items()}
    output = network(*inputs.values())
    direction = torch.randn(output.shape).double()
    (output * direction).sum().backward()
    tensors = {"output": output, "direction": direction, **inputs}
    for name, parameter in network.named_parameters():
        tensors["weights." + name] = parameter
        tensors["gradients." + name] = parameter.grad
    save_file({name: value.detach().float().contiguous() for name, value in tensors.items()}, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    for residual in (False, True):
        for bilinear in (False, True):
            torch.manual_seed(1)
            name = ("residual" if residual else "unet") + ("_bilinear" if bilinear else "")
            network = Generator(1, 3, residual, bilinear)
            store(network, {"x": torch.rand(2, 3, 32, 32) * 2 - 1}, folder / f"{name}.safetensors")
    torch.manual_seed(2)
    inputs = {name: torch.rand(2, 3, 32, 32) * 2 - 1 for name in "xy"}
    store(PatchGan(2, 4, 8), inputs, folder / "patchgan.safetensors")
    try:
        from nectargan.models.unet.blocks import ResidualUnetBlock
        from nectargan.models.unet.model import UnetGenerator
    except ImportError:
        return
    for upconv_type in ("Transposed", "Bilinear"):
        torch.manual_seed(3)
        network = UnetGenerator(32, features=1, n_downs=3, block_type=ResidualUnetBlock,
                                upconv_type=upconv_type)
        for parameter in network.parameters():
            parameter.data.mul_(10)  # as large as trained ones
        store(network, {"x": torch.rand(2, 3, 32, 32) * 2 - 1},
              folder / f"nectargan_residual_{upconv_type.lower()}.safetensors")


if __name__ == "__main__":
    main()
