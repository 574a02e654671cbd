"""Makes what tests/runtime/optim compares with, by torch.optim itself:
    python tests/data/optim/make.py
writes trajectories.safetensors and schedules.safetensors beside this file. The metadata of both
holds the config of every case, in YAML.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import (ConstantLR, CosineAnnealingLR, LambdaLR, LinearLR, MultiStepLR,
                                      SequentialLR, StepLR)

FOLDER = pathlib.Path(__file__).parent
STEPS = 20
SHAPES = {"fc.weight": (4, 3), "fc.bias": (4,), "scale": ()}


def one_group(parameters, **kwargs):
    return [{"params": list(parameters.values()), **kwargs}]


def no_decay_for_bias(parameters):
    return [
        {"params": [parameters["fc.bias"]], "weight_decay": 0.0, "lr": 0.2},
        {"params": [parameters["fc.weight"], parameters["scale"]]},
    ]


# name: (config, optimizer from parameters, extras)
CASES = {
    "sgd": ("{class: SGD, lr: 0.1}", lambda p: SGD(one_group(p), lr=0.1)),
    "sgd_momentum": ("{class: SGD, lr: 0.1, momentum: 0.9, weight_decay: 0.05}",
                     lambda p: SGD(one_group(p), lr=0.1, momentum=0.9, weight_decay=0.05)),
    "sgd_dampening": ("{class: SGD, lr: 0.1, momentum: 0.9, dampening: 0.3}",
                      lambda p: SGD(one_group(p), lr=0.1, momentum=0.9, dampening=0.3)),
    "sgd_nesterov": ("{class: SGD, lr: 0.1, momentum: 0.8, nesterov: true, weight_decay: 0.01}",
                     lambda p: SGD(one_group(p), lr=0.1, momentum=0.8, nesterov=True,
                                   weight_decay=0.01)),
    "sgd_missing": ("{class: SGD, lr: 0.1, momentum: 0.9, dampening: 0.3}",
                    lambda p: SGD(one_group(p), lr=0.1, momentum=0.9, dampening=0.3)),
    "adam": ("{class: Adam}", lambda p: Adam(one_group(p))),
    "adam_decay": ("{class: Adam, lr: 0.05, betas: [0.5, 0.9], eps: 1e-4, weight_decay: 0.1}",
                   lambda p: Adam(one_group(p), lr=0.05, betas=(0.5, 0.9), eps=1e-4,
                                  weight_decay=0.1)),
    "adam_amsgrad": ("{class: Adam, lr: 0.05, amsgrad: true}",
                     lambda p: Adam(one_group(p), lr=0.05, amsgrad=True)),
    "adam_missing": ("{class: Adam, lr: 0.05}", lambda p: Adam(one_group(p), lr=0.05)),
    "adam_cosine": ("{class: Adam, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}}",
                    lambda p: Adam(one_group(p), lr=0.05)),
    "adam_clip_norm": ("{class: Adam, lr: 0.05, clip_norm: 1.5}",
                       lambda p: Adam(one_group(p), lr=0.05)),
    "adam_clip_both": ("{class: Adam, lr: 0.05, clip_norm: 1.5, clip_value: 0.5}",
                       lambda p: Adam(one_group(p), lr=0.05)),
    "sgd_clip_norm": ("{class: SGD, lr: 0.1, clip_norm: 1.5}",
                      lambda p: SGD(one_group(p), lr=0.1)),
    "sgd_clip_value": ("{class: SGD, lr: 0.1, clip_value: 0.5}",
                       lambda p: SGD(one_group(p), lr=0.1)),
    "adamw": ("{class: AdamW, lr: 0.05}", lambda p: AdamW(one_group(p), lr=0.05)),
    "adamw_amsgrad": ("{class: AdamW, lr: 0.05, weight_decay: 0.5, amsgrad: true}",
                      lambda p: AdamW(one_group(p), lr=0.05, weight_decay=0.5, amsgrad=True)),
    "adamw_groups": ('{class: AdamW, lr: 0.05, weight_decay: 0.3, '
                     'groups: [{match: "bias$", weight_decay: 0, lr: 0.2}]}',
                     lambda p: AdamW(no_decay_for_bias(p), lr=0.05, weight_decay=0.3)),
    "sgd_groups": ('{class: SGD, lr: 0.05, momentum: 0.9, weight_decay: 0.3, '
                   'groups: [{match: "bias$", weight_decay: 0, lr: 0.2}]}',
                   lambda p: SGD(no_decay_for_bias(p), lr=0.05, momentum=0.9, weight_decay=0.3)),
}


def make_trajectories():
    torch.manual_seed(0)
    start = {name: torch.randn(shape) for name, shape in SHAPES.items()}
    gradients = {name: torch.randn((STEPS, *shape)) for name, shape in SHAPES.items()}
    tensors = {f"start/{name}": value for name, value in start.items()}
    tensors |= {f"gradient/{name}": value for name, value in gradients.items()}
    for case, (config, make) in CASES.items():
        parameters = {name: value.clone().requires_grad_() for name, value in start.items()}
        optimizer = make(parameters)
        scheduler = CosineAnnealingLR(optimizer, 20, 0.001) if "cosine" in case else None
        trajectory = {name: [] for name in SHAPES}
        for step in range(STEPS):
            for name, parameter in parameters.items():
                # In the cases of missing gradients the bias has one only in every third step.
                is_missing = "missing" in case and name == "fc.bias" and step % 3 != 1
                parameter.grad = None if is_missing else gradients[name][step].clone()
            if "clip_value" in config:
                torch.nn.utils.clip_grad_value_(parameters.values(), 0.5)
            if "clip_norm" in config:
                torch.nn.utils.clip_grad_norm_(parameters.values(), 1.5)
            optimizer.step()
            if scheduler:
                scheduler.step()
            for name, parameter in parameters.items():
                trajectory[name].append(parameter.detach().clone())
        tensors |= {f"{case}/{name}": torch.stack(values) for name, values in trajectory.items()}
    save_file(tensors, FOLDER / "trajectories.safetensors",
              {case: config for case, (config, _) in CASES.items()})


def values_of(make, lr=1.0, steps=60):
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = make(optimizer)
    values = []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return torch.tensor(values, dtype=torch.float64)


def chained(optimizer):
    parts = [LinearLR(optimizer, 0.1, 1.0, 10), ConstantLR(optimizer, 1.0, 1),
             CosineAnnealingLR(optimizer, 30, 0.01)]
    return SequentialLR(optimizer, parts, [10, 30])


SCHEDULES = {
    "constant": ("{class: constant, value: 0.3}", lambda o: LambdaLR(o, lambda step: 1.0), 0.3),
    "warmup": ("{class: warmup, from: 0.05, to: 0.5, steps: 12}", lambda o: LinearLR(o, 0.1, 1, 12),
               0.5),
    "linear": ("{class: linear, from: 0.5, to: 0.1, steps: 25}",
               lambda o: LinearLR(o, 1.0, 0.2, 25), 0.5),
    "step": ("{class: step, from: 0.5, factor: 0.3, every: 7}", lambda o: StepLR(o, 7, 0.3), 0.5),
    "exponential": ("{class: step, from: 0.5, factor: 0.9, every: 1}",
                    lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9), 0.5),
    "multi_step": ("{class: step, from: 0.5, at: [5, 6, 40]}", lambda o: MultiStepLR(o, [5, 6, 40]),
                   0.5),
    "cosine": ("{class: cosine, from: 0.5, to: 0.02, steps: 59}",
               lambda o: CosineAnnealingLR(o, 59, 0.02), 0.5),
    "chain": ("{class: chain, parts: ["
              "{schedule: {class: warmup, from: 0.1, to: 1, steps: 10}, steps: 10}, "
              "{schedule: 1, steps: 20}, "
              "{schedule: {class: cosine, from: 1, to: 0.01, steps: 30}}]}", chained, 1.0),
}


def make_schedules():
    save_file({name: values_of(make, lr) for name, (_, make, lr) in SCHEDULES.items()},
              FOLDER / "schedules.safetensors",
              {name: config for name, (config, _, _) in SCHEDULES.items()})


if __name__ == "__main__":
    make_trajectories()
    make_schedules()
