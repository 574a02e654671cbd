"""Makes what tests/models/super_resolution/srflow_test.cpp compares with: what DL-Art-School's own SRFlow, run from its code,
makes of images and of latents, its losses and gradients.

    make.py CODES    CODES is the folder codes/ of neonbjb/DL-Art-School at f563a8dd41; needs torch and safetensors

Writes values.safetensors beside itself. The weights are not stored but a formula of their place: of the network's
state in the order of its names, the i-th number of the k-th tensor is weight(k, i).

There, the features of the smaller image always have 5 x 64 channels, so the cases have nf 64 and four blocks.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "extensible"))
import dl_art_school  # noqa: E402

dl_art_school.Stubs.NAMES = dl_art_school.Stubs.NAMES | {"munch", "torchaudio", "orjson", "scipy"}
dl_art_school.prepare(sys.argv[1])
from models.srflow import RRDBNet_arch, SRFlowNet_arch  # noqa: E402

BLOCKS = {"blocks": [0, 1, 1, 0], "concat": True}
COUPLING = "CondAffineSeparatedAndCond"
RRDB = {"nf": 64, "nb": 2, "gc": 4, "K": 1}  # K counts before a flow/K that is no list
# The network, and the height of the smaller image. Each flow begins with images of [2, 3, size, size].
FLOWS = [
    ("recipe", 4, {**RRDB, "scale": 4, "train_RRDB": True, "flow": {
        "patch_size": 16, "K": 7, "L": 3, "coupling": COUPLING, "additionalFlowNoAffine": 2, "stackRRDB": BLOCKS,
        "split": {"enable": True}, "fea_up0": True, "fea_up-1": True, "noInitialInj": True,
        "gaussian_loss_weight": 0.5, "CondAffineSeparatedAndCond": {"hidden_channels": 8}}}),
    ("eight", 4, {**RRDB, "scale": 8, "flow_scale": 8, "initial_stride": 2, "rrdb_bypass": True, "train_RRDB": True,
                  "flow": {
        "patch_size": 16, "K": [0, 1, 2, 1], "L": 3, "coupling": COUPLING, "stackRRDB": BLOCKS,
        "split": {"enable": True, "correct_splits": True, "consume_ratio": 0.3, "logs_eps": 0.01},
        "CondAffineSeparatedAndCond": {"hidden_channels": 8, "eps": 0.01}}}),
    ("whole", 4, {**RRDB, "scale": 4, "flow": {
        "patch_size": 16, "K": 7, "L": 4, "coupling": COUPLING, "stackRRDB": BLOCKS, "fea_up0": True,
        "fea_up-1": True, "augmentation": {"noiseQuant": False},
        "CondAffineSeparatedAndCond": {"hidden_channels": 8}}}),
]
RRDBS = [
    ("rrdb_srflow", 4, {"in_nc": 3, "out_nc": 3, "nf": 8, "nb": 2, "gc": 4, "scale": 4, "initial_stride": 1}),
    ("rrdb_srflow", 8, {"in_nc": 3, "out_nc": 2, "nf": 4, "nb": 1, "gc": 2, "scale": 16, "initial_stride": 2}),
    ("rrdb_latent_wrapper", 5, {"in_nc": 3, "out_nc": 3, "nf": 8, "nb": 2, "gc": 4, "scale": 4,
                                "with_bypass": False, "blocks_for_latent": [1]}),
    ("rrdb_latent_wrapper", 5, {"in_nc": 3, "out_nc": 3, "nf": 8, "nb": 2, "gc": 4, "scale": 4,
                                "with_bypass": True, "blocks_for_latent": [0, 1]}),
]


class Wrapper(RRDBNet_arch.RRDBLatentWrapper):
    """There, the constructor gives the blocks to the stride, and the first image fails; here they arrive."""

    def __init__(self, config):
        torch.nn.Module.__init__(self)
        self.blocks = config["blocks_for_latent"]
        nf, width = config["nf"], config["nf"] * (len(self.blocks) + 1)
        generator = {"flow": {"stackRRDB": {"blocks": self.blocks}}, "rrdb_bypass": config["with_bypass"]}
        self.wrappedRRDB = RRDBNet_arch.RRDBNet(config["in_nc"], config["out_nc"], nf, config["nb"], config["gc"],
                                                config["scale"], opt={"networks": {"generator": generator}})
        block = RRDBNet_arch.ConvGnLelu
        self.postprocess = torch.nn.Sequential(
            block(width, width, kernel_size=1, bias=True, activation=True, norm=True),
            block(width, width, kernel_size=1, bias=True, activation=True, norm=True),
            block(width, width, kernel_size=1, bias=True, activation=False, norm=False))


def weight(k, shape, name):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    wave = torch.sin(i * 0.7 + k * 1.3 + torch.sin(i * 0.013) * 0.1)
    if name.endswith("invconv.weight"):
        return (wave.reshape(shape) * 0.3 / shape[0] ** 0.5 + torch.eye(shape[0], dtype=torch.float64)).float()
    if name.endswith("gn.weight"):
        return (wave * 0.1 + 1).float()
    if name.endswith(("bias", "logs")):
        return (wave * 0.1).float().reshape(shape)
    fan_in = len(i) / shape[0]
    return (wave * (1 / fan_in) ** 0.5).float().reshape(shape)


def fill(net):
    state = net.state_dict()
    shapes = {name: list(state[name].shape) for name in sorted(state)}
    net.load_state_dict({name: weight(k, shape, name) for k, (name, shape) in enumerate(shapes.items())})
    return shapes


def picture(*shape):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(i * 0.37 + torch.sin(i * 0.011)) * 0.5 + 0.5).float().reshape(shape)


def gradients(net):
    """Of each parameter, in the order of the names: the norm and the first number; zeros without one."""
    rows = []
    for _, value in sorted(net.named_parameters()):
        grad = value.grad if value.grad is not None else torch.zeros_like(value)
        rows.append([grad.double().norm().item(), grad.flatten()[0].item()])
    return torch.tensor(rows)


def direction(x):
    return torch.cos(torch.arange(x.numel(), dtype=torch.float32)).reshape(x.shape)


def main():
    tensors, cases = {}, []
    for name, size, config in FLOWS:
        scale = config.get("flow_scale", config["scale"]) // config.get("initial_stride", 1)
        opt = dl_art_school.options({"scale": scale, "networks": {"generator": {**config}},
                                     "datasets": {"train": {}}})
        opt["networks"]["generator"].setdefault("flow_scale", config["scale"])
        net = SRFlowNet_arch.SRFlowNet(3, 3, config["nf"], config["nb"], config["gc"], config["scale"], config["K"], opt=opt)
        shapes = fill(net)
        image, small = picture(2, 3, size * scale, size * scale), picture(2, 3, size, size)
        image.requires_grad_()
        torch.manual_seed(5)
        latents, nll, logdet = net(gt=image, lr=small)
        nll.mean().backward()
        tensors |= {f"{name}/nll": nll, f"{name}/logdet": logdet, f"{name}/gradients": gradients(net),
                    f"{name}/gradient": image.grad.clone()}
        tensors |= {f"{name}/latent{i}": latent for i, latent in enumerate(latents)}
        net.zero_grad()
        given = [latent.detach().requires_grad_() for latent in latents]
        out, reverse_logdet, rrdb = net(lr=small, z=given[-1], epses=given, reverse=True, reverse_with_grad=True)
        (out * direction(out)).sum().backward()
        tensors |= {f"{name}/image": out, f"{name}/reverse_logdet": reverse_logdet, f"{name}/rrdb": rrdb,
                    f"{name}/reverse_gradients": gradients(net), f"{name}/reverse_gradient": given[-1].grad.clone()}
        if config["flow"].get("split"):
            torch.manual_seed(6)
            tensors[f"{name}/drawn"] = net(lr=small, eps_std=0.4, reverse=True)[0]
        cases.append({"name": name, "class": "srflow", "config": config, "size": size, "scale": scale,
                      "latents": len(latents), "shapes": shapes})
    for i, (kind, size, config) in enumerate(RRDBS):
        name = f"{kind}{i}"
        if kind == "rrdb_srflow":
            net = RRDBNet_arch.RRDBNet(config["in_nc"], config["out_nc"], config["nf"], config["nb"], config["gc"],
                                       config["scale"], config["initial_stride"])
        else:
            net = Wrapper(config)
        shapes = fill(net)
        image = picture(2, 3, size, size).requires_grad_()
        made = net(image)
        (made * direction(made)).sum().backward()
        tensors |= {f"{name}/made": made if made.numel() < 3000 else made[:, :, 50:60, 50:60],
                    f"{name}/gradient": image.grad.clone(), f"{name}/gradients": gradients(net)}
        cases.append({"name": name, "class": kind, "config": config, "size": size, "shapes": shapes})
    save_file({name: value.detach().contiguous() for name, value in tensors.items()}, HERE / "values.safetensors",
              metadata={"cases": json.dumps(cases, separators=(",", ":"))})


main()
