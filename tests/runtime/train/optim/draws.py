"""Draws optimizers, schedules and plateaus at random, and writes what PyTorch makes of them.

    draws.py FILE

The metadata of FILE has each draw's config in YAML. A gradient of NaN stands for none.
"""

import json
import random
import sys

import torch
from safetensors.torch import save_file
from torch.optim import lr_scheduler

draw = random.Random(61)
STEPS = 8
SHAPES = {"weight": (4, 3), "bias": (4,)}
tensors, configs = {}, {}


def yaml(class_, options, more=""):
    """JSON is YAML."""
    return "{class: %s, %s%s}" % (
        class_, ", ".join(f"{key}: {json.dumps(value)}" for key, value in options.items()), more)


def some(**options):
    """Each option with a chance of 0.7, else PyTorch's default."""
    return {name: value for name, value in options.items() if draw.random() < 0.7}


def adam():
    return {"lr": draw.choice([1e-3, 0.1]),
            **some(betas=[draw.choice([0.0, 0.5, 0.9]), draw.choice([0.0, 0.9, 0.999])],
                   eps=draw.choice([1e-8, 1e-3]), weight_decay=draw.choice([0.0, 0.2]))}


def flag():
    return draw.random() < 0.5


def sgd():
    options = {"lr": 0.1, **some(momentum=draw.choice([0.5, 0.9]), weight_decay=0.1)}
    if "momentum" in options:
        options |= draw.choice([{"nesterov": True}, {"dampening": 0.4}, {"dampening": 1.0}])
    return options


OPTIMIZERS = {
    "SGD": sgd,
    "Adam": lambda: adam() | some(amsgrad=flag()),
    "AdamW": lambda: adam() | some(amsgrad=flag()),
    "NAdam": lambda: adam() | some(momentum_decay=draw.choice([0.0, 0.1]),
                                   decoupled_weight_decay=flag()),
    "RAdam": lambda: adam() | some(decoupled_weight_decay=flag()),
    "Adamax": adam,
    "Adagrad": lambda: {"lr": 0.1, **some(lr_decay=0.3, weight_decay=0.1, eps=1e-6)},
    "Adadelta": lambda: {"lr": 0.5, **some(rho=draw.choice([0.0, 0.8]), eps=1e-4,
                                           weight_decay=0.1)},
    "RMSprop": lambda: {"lr": 0.02, **some(alpha=draw.choice([0.5, 0.9]), eps=1e-4,
                                           weight_decay=0.1, momentum=0.7, centered=flag())},
}


def draw_gradients():
    scale = draw.choice([1.0, 1.0, 1e-6, 1e6])
    gradients = {name: scale * torch.randn(STEPS, *shape) for name, shape in SHAPES.items()}
    if flag():
        gradients["weight"] *= torch.rand(STEPS, *SHAPES["weight"]) < 0.5
    if flag():
        gradients["bias"][torch.rand(STEPS) < 0.4] = float("nan")
    return gradients


def draw_optimizer(name, class_):
    options = OPTIMIZERS[class_]()
    clip_norm = draw.choice([None, None, 0.7])
    configs[name] = yaml(class_, options, f", clip_norm: {clip_norm}" if clip_norm else "")
    start = {key: torch.randn(shape) for key, shape in SHAPES.items()}
    gradients = draw_gradients()
    parameters = {key: value.clone().requires_grad_() for key, value in start.items()}
    optimizer = getattr(torch.optim, class_)(list(parameters.values()), **options)
    for step in range(STEPS):
        for key, parameter in parameters.items():
            gradient = gradients[key][step]
            parameter.grad = None if gradient.isnan().all() else gradient.clone()
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(parameters.values(), clip_norm)
        optimizer.step()
    for key in SHAPES:
        tensors[f"{name}/start/{key}"] = start[key]
        tensors[f"{name}/gradient/{key}"] = gradients[key]
        tensors[f"{name}/end/{key}"] = parameters[key].detach()


def length():
    return draw.randint(2, 15)


SCHEDULES = {
    "StepLR": lambda: {"step_size": length(), **some(gamma=0.3)},
    "MultiStepLR": lambda: {"milestones": sorted(length() for _ in range(3)), **some(gamma=0.4)},
    "ConstantLR": lambda: some(factor=0.2, total_iters=length()),
    "LinearLR": lambda: some(start_factor=0.2, end_factor=0.6, total_iters=length()),
    "ExponentialLR": lambda: {"gamma": draw.choice([0.5, 0.97, 1.02])},
    "PolynomialLR": lambda: some(total_iters=length(), power=draw.choice([0.5, 2.0])),
    "CosineAnnealingLR": lambda: {"T_max": length(), **some(eta_min=0.03)},
    "CosineAnnealingWarmRestarts": lambda: {"T_0": length(), **some(T_mult=2, eta_min=0.03)},
    "CyclicLR": lambda: {"base_lr": 0.1, "max_lr": 0.7, "step_size_up": length(),
                         "mode": draw.choice(["triangular", "triangular2", "exp_range"]),
                         **some(step_size_down=length(), gamma=draw.choice([0.8, 0.99]))},
}
LENGTHS = {"step_size", "milestones", "total_iters", "T_max", "T_0", "step_size_up",
           "step_size_down"}


def in_epochs(value):
    return [f"{each}e" for each in value] if isinstance(value, list) else f"{value}e"


def draw_schedule(name, class_, per_epoch):
    options = SCHEDULES[class_]()
    shown = {} if class_ == "CyclicLR" else {"from": 0.5}
    for key, value in options.items():
        shown[key] = in_epochs(value) if per_epoch and key in LENGTHS else value
    configs[name] = yaml(class_, shown, ", per: epoch" if per_epoch else "")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    more = {"cycle_momentum": False} if class_ == "CyclicLR" else {}
    scheduler = getattr(lr_scheduler, class_)(optimizer, **options, **more)
    values = []
    for _ in range(30):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    tensors[f"{name}/values"] = torch.tensor(values, dtype=torch.float64)


def draw_plateau(name):
    options = some(mode=draw.choice(["min", "max"]), factor=0.5, patience=draw.randint(0, 3),
                   threshold=draw.choice([0.0, 0.1]), threshold_mode=draw.choice(["rel", "abs"]),
                   cooldown=draw.randint(0, 3))
    least = some(min=0.05)
    configs[name] = yaml("plateau", {"from": 0.5, "metric": "m", **options, **least})
    metric = torch.rand(40, dtype=torch.float64).add(0.5)
    metric[torch.rand(40) < 0.1] = float("nan")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=least.get("min", 0), **options)
    values = []
    for value in metric.tolist():
        scheduler.step(value)
        values.append(optimizer.param_groups[0]["lr"])
    tensors[f"{name}/metric"] = metric
    tensors[f"{name}/values"] = torch.tensor(values, dtype=torch.float64)


torch.manual_seed(61)
for i in range(24):
    draw_optimizer(f"optimizer{i}", list(OPTIMIZERS)[i % len(OPTIMIZERS)])
for i in range(18):
    draw_schedule(f"schedule{i}", list(SCHEDULES)[i % len(SCHEDULES)], per_epoch=i % 2 == 0)
for i in range(5):
    draw_plateau(f"plateau{i}")
save_file(tensors, sys.argv[1], configs)
