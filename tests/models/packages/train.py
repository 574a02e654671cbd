"""python train.py FOLDER PLACES [NAME...]: exports networks of Python packages, and trains each by a loop of PyTorch.

PLACES is `eval_out/python:.venv/networks`, where stepop and the packages are. For each network of `cases`:

  NAME.pt2              what stepop.export writes
  NAME.KEY.npy          the data, NAME.held.KEY.npy those of the evaluation
  NAME.yaml             the config of the same training
  NAME.json             the loss of each step, and that of the evaluation at the end
  NAME.safetensors      the weights and buffers: `first.<name>` before, `last.<name>` after the training;
                        `frozen.<name>` are those that the optimizer does not get
"""

import contextlib
import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable

import numpy
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), *sys.argv[2].split(":")]
os.environ["HF_HUB_OFFLINE"] = "1"
if not torch.backends.cuda.is_built():
    # PyPI's torchvision is built for CUDA, and its operations do not load beside a torch for CPUs. No network here
    # calls them; its import needs two of their names.
    for operation in ("nms", "qnms"):
        torch.library.define(f"torchvision::{operation}", "(Tensor dets, Tensor scores, float limit) -> Tensor")
import torchvision  # noqa: E402, F401

from nets import CLASSES, SIZE, TOKENS, WORDS  # noqa: E402

NETS = os.path.dirname(os.path.abspath(__file__)) + "/nets.py"
STEPS, BATCH, EXAMPLES = 10, 4, 19  # two epochs, whose last batch has 3 examples


def auxiliary_loss(net, image, mask):
    results = net(image)
    return F.cross_entropy(results["out"], mask) + 0.5 * F.cross_entropy(results["aux"], mask)


def own_loss(net, *batch):
    return net.loss(*batch)


def class_loss(net, given, kind):
    return F.cross_entropy(net(given), kind)


def sgd(**options):
    return lambda parameters: torch.optim.SGD(parameters, **options)


def adam(**options):
    return lambda parameters: torch.optim.Adam(parameters, **options)


def adamw(**options):
    return lambda parameters: torch.optim.AdamW(parameters, **options)


@dataclasses.dataclass
class Case:
    make: str
    inputs: dict[str, str]  # as --example has them
    target: str
    loss: Callable
    optimizer: Callable
    config: str
    free: tuple[str, ...] = ()  # as --free has it; what torch.export takes long to free is fixed


IMAGE = {"image": f"{BATCH},3,{SIZE},{SIZE}"}
TEXT = {"tokens": f"{BATCH},{TOKENS}:int64:{WORDS}"}
MOMENTUM = sgd(lr=0.05, momentum=0.9, weight_decay=0.02)
MOMENTUM_KEYS = "optimizer: {class: SGD, lr: 0.05, momentum: 0.9, weight_decay: 0.02}"
ADAM = adam(lr=1e-3, eps=1e-4, weight_decay=0.01)
ADAM_KEYS = "optimizer: {class: Adam, lr: 1e-3, eps: 1e-4, weight_decay: 0.01}"
ADAMW = adamw(lr=3e-3, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)
ADAMW_KEYS = "optimizer: {class: AdamW, lr: 3e-3, betas: [0.8, 0.95], eps: 1e-4, weight_decay: 0.1}"

cases = {
    "resnet": Case("resnet", IMAGE, "class", class_loss, MOMENTUM, f"iterator: Classifier\n{MOMENTUM_KEYS}"),
    "efficientnet": Case("efficientnet", IMAGE, "class", class_loss, ADAM, f"iterator: Classifier\n{ADAM_KEYS}"),
    "vit": Case("vit", IMAGE, "class", class_loss, ADAMW, f"iterator: Classifier\n{ADAMW_KEYS}"),
    "fcn": Case("Fcn", IMAGE, "mask", auxiliary_loss, MOMENTUM,
                f"iterator: PackageNets\ninputs: [image]\nloss: auxiliary\n{MOMENTUM_KEYS}"),
    "segformer": Case("Segformer", IMAGE, "mask", own_loss, MOMENTUM,
                      f"iterator: Classifier\ntarget: mask\nignore: 255\n{MOMENTUM_KEYS}"),
    "bert": Case("Bert", {**TEXT, "mask": f"{BATCH},{TOKENS}:int64:2"}, "class", own_loss, ADAMW,
                 f"iterator: PackageNets\ninputs: [tokens, mask]\nloss: classes\n{ADAMW_KEYS}"),
    "gpt2": Case("Gpt2", TEXT, "following", own_loss, MOMENTUM,
                 f"iterator: Classifier\ninput: tokens\ntarget: following\n{MOMENTUM_KEYS}"),
    "sequencer": Case("sequencer", IMAGE, "class", class_loss, MOMENTUM, f"iterator: Classifier\n{MOMENTUM_KEYS}",
                      ("image=0",)),
    "clip": Case("Clip", {**TEXT, **IMAGE}, "", own_loss, MOMENTUM,
                 f"iterator: PackageNets\ninputs: [tokens, image]\nloss: pairs\n{MOMENTUM_KEYS}"),
    "lora": Case("Lora", TEXT, "class", own_loss, ADAMW, f"iterator: Classifier\ninput: tokens\n{ADAMW_KEYS}"),
}


def draw(case, count):
    """The data of a case, each [count, ...], those of the inputs first."""
    data = {}
    for name, text in case.inputs.items():
        sizes, *kind = text.split(":")
        shape = [count, *map(int, sizes.split(",")[1:])]
        data[name] = torch.randint(0, int(kind[1]), shape) if kind else torch.randn(shape)
    if "mask" in data:  # of words: at least one in each example
        data["mask"][:, 0] = 1
    if case.target == "class":
        data["class"] = torch.randint(0, CLASSES, (count,))
    elif case.target == "mask":
        data["mask"] = torch.randint(0, CLASSES, (count, SIZE, SIZE))
        if "255" in case.config:
            data["mask"][:, :3] = 255
    elif case.target == "following":
        data["following"] = torch.cat([data["tokens"][:, 1:], torch.full((count, 1), -100)], 1)
    return data


def config_of(folder, name, data, config):
    def files(split):
        return "{" + ", ".join(f"{key}: {folder}/{name}.{split}{key}.npy" for key in data) + "}"

    return (f"{config}\nmodel: {{class: Exported, path: {folder}/{name}.pt2}}\n"
            f"datasets:\n  train: {{class: Npy, files: {files('')}}}\n"
            f"  validation: {{class: Npy, files: {files('held.')}}}\n"
            f"samplers: {{train: sequential}}\nbatch_size: {BATCH}\ntest_batch_size: {EXAMPLES}\nnum_steps: {STEPS}\n"
            "log_freq: 1\nnum_threads: 1\nn_data_processes: 0\n")


def write(folder, name, case):
    from stepop.eval.export import main
    from stepop.eval.export_source import make

    torch.manual_seed(7)
    data, held = draw(case, EXAMPLES), draw(case, EXAMPLES)
    for split, tensors in (("", data), ("held.", held)):
        for key, tensor in tensors.items():
            numpy.save(f"{folder}/{name}.{split}{key}.npy", tensor.numpy())
    with open(f"{folder}/{name}.yaml", "w") as file:
        file.write(config_of(folder, name, data, case.config))

    place = f"{NETS}:{case.make}"
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main([place, *(f"--example={key}={text}" for key, text in case.inputs.items()),
              *(f"--free={text}" for text in case.free), "-o", f"{folder}/{name}.pt2"])

    torch.manual_seed(1)  # that of the export
    net = make(place, "{}").train()
    facts = {f"first.{key}": tensor.clone() for key, tensor in net.state_dict().items()}
    facts.update({f"frozen.{key}": each.detach().clone() for key, each in net.named_parameters() if not each.requires_grad})
    optimizer = case.optimizer([each for each in net.parameters() if each.requires_grad])
    losses = []
    while len(losses) < STEPS:
        for i in range(0, EXAMPLES, BATCH):
            loss = case.loss(net, *(tensor[i:i + BATCH] for tensor in data.values()))
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    facts.update({f"last.{key}": tensor.clone() for key, tensor in net.state_dict().items()})
    save_file(facts, f"{folder}/{name}.safetensors")
    net.eval()
    with torch.no_grad(), open(f"{folder}/{name}.json", "w") as file:
        evaluation = case.loss(net, *held.values()).item()
        json.dump({"losses": losses, "evaluation": evaluation, "export": said.getvalue()}, file)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each_name, each_case in cases.items():
        if len(sys.argv) < 4 or each_name in sys.argv[3:]:
            write(sys.argv[1], each_name, each_case)
