"""Makes what tests/models/super_resolution/srgan_test.cpp compares with: what DL-Art-School's own networks, run from its code,
make of an image, and their gradients.

    make.py CODES    CODES is the folder codes/ of neonbjb/DL-Art-School at f31a333; needs torch and safetensors

Writes values.safetensors beside itself. The weights are not stored but a formula of their place: of the network's
state in the order of its names, the i-th number of the k-th tensor is weight(k, i).
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "extensible"))
import dl_art_school  # noqa: E402

dl_art_school.prepare(sys.argv[1])
from models.image_generation import RRDBNet_arch, discriminator_vgg_arch  # noqa: E402

CASES = [
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 1, "gc": 2, "scale": 4}, 4),
    ("RRDBNet", {"in_nc": 3, "out_nc": 2, "nf": 4, "nb": 2, "gc": 4, "scale": 2}, 5),
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 1, "gc": 2, "scale": 8}, 3),
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 1, "gc": 2, "scale": 4, "additive_mode": "additive"}, 4),
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 1, "gc": 2, "scale": 4,
                 "additive_mode": "additive_enforced"}, 4),
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 1, "gc": 2, "scale": 4, "initial_stride": 2}, 8),
    ("RRDBNet", {"in_nc": 3, "out_nc": 3, "nf": 4, "nb": 2, "gc": 2, "scale": 2, "skip_around_body": True}, 4),
    ("discriminator_vgg_128", {"in_nc": 3, "nf": 2, "image_size": 128, "extra_conv": False}, 128),
    ("discriminator_vgg_128_gn", {"in_nc": 3, "nf": 8, "image_size": 64}, 64),
    ("discriminator_vgg_128_gn", {"in_nc": 3, "nf": 8, "image_size": 64, "extra_conv": True}, 64),
]


class AroundBody(RRDBNet_arch.RRDBNet):
    """With the paper's skip, for scale 2."""

    def forward(self, x):
        first = self.conv_first(x)
        x = first + self.conv_body(self.body(first))
        x = self.lrelu(self.conv_up1(torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")))
        return self.conv_last(self.lrelu(self.conv_hr(self.lrelu(self.conv_up2(x)))))


def build(name, config):
    module = RRDBNet_arch if name == "RRDBNet" else discriminator_vgg_arch
    if config.get("skip_around_body"):
        return AroundBody(config["in_nc"], config["out_nc"], config["nf"], config["nb"], config["gc"],
                          scale=config["scale"])
    if name == "discriminator_vgg_128":  # its own builder hands a float on, which nn.Linear refuses
        return module.Discriminator_VGG_128(config["in_nc"], config["nf"], config["image_size"] // 128,
                                            config["extra_conv"])
    return getattr(module, "register_" + name)(dl_art_school.options(config), {})


def weight(k, shape, name):
    i = torch.arange(shape.numel(), dtype=torch.float64)
    wave = torch.sin(i * 0.7 + k * 1.3 + 0.1 * torch.sin(i * 0.013))
    if name.endswith("running_var"):
        return 1 + 0.3 * wave
    if len(shape) == 1:
        return 0.1 * wave + (1 if name.endswith("weight") else 0)
    return wave * (2 / shape[1:].numel()) ** 0.5


tensors, cases = {}, []
for number, (name, config, size) in enumerate(CASES):
    case = f"{number}_{name}"
    net = build(name, config)
    state = {key: tensor for key, tensor in sorted(net.state_dict().items()) if "num_batches" not in key}
    for k, (key, tensor) in enumerate(state.items()):
        tensor.copy_(weight(k, tensor.shape, key).reshape(tensor.shape))
    i = torch.arange(2 * 3 * size * size, dtype=torch.float64)
    image = torch.sin(i * 0.37 + torch.sin(i * 0.011)).float().reshape(2, 3, size, size).requires_grad_()
    net.eval()
    tensors[f"{case}/evaluated"] = net(image)
    net.train()
    made = net(image)
    tensors[f"{case}/made"] = made
    (made * torch.cos(torch.arange(made.numel(), dtype=torch.float32)).reshape(made.shape)).sum().backward()
    # Of large gradients a part says as much.
    tensors[f"{case}/gradient"] = image.grad[:, :, :4, :4]
    for key, parameter in net.named_parameters():
        tensors[f"{case}/gradient_of/{key}"] = parameter.grad.flatten()[:3]
    cases.append({"name": case, "config": {"class": name} | config, "size": size,
                  "shapes": {key: list(tensor.shape) for key, tensor in state.items()}})
save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()}, HERE / "values.safetensors",
          metadata={"cases": json.dumps(cases)})
