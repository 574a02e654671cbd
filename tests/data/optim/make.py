"""Makes what tests/runtime/optim compares with, by torch.optim itself:
    python tests/data/optim/make.py
writes trajectories, matrices, schedule_free, schedules, per_epoch and plateaus.safetensors beside
this file.
The metadata of each holds the config of every case, in YAML. schedule_free is of the package
schedulefree==1.4.1, which must be installed too.
"""

import math
import pathlib

import torch
from safetensors.torch import save_file
from torch.optim import (ASGD, SGD, Adadelta, Adafactor, Adagrad, Adam, Adamax, AdamW, Muon,
                         NAdam, Optimizer, RAdam, RMSprop, Rprop)
from torch.optim.lr_scheduler import (ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts,
                                      CyclicLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR, OneCycleLR,
                                      PolynomialLR, ReduceLROnPlateau,
                                      SequentialLR, StepLR)

FOLDER = pathlib.Path(__file__).parent
STEPS = 20
SHAPES = {"fc.weight": (4, 3), "fc.bias": (4,), "scale": ()}
MATRIX_SHAPES = {"wide.weight": (3, 5), "tall.weight": (6, 2), "conv.weight": (3, 2, 2, 2),
                 "fc.bias": (4,), "scale": ()}


def one_group(parameters, **kwargs):
    return [{"params": list(parameters.values()), **kwargs}]


def no_decay_for_bias(parameters):
    return [
        {"params": [parameters["fc.bias"]], "weight_decay": 0.0, "lr": 0.2},
        {"params": [parameters["fc.weight"], parameters["scale"]]},
    ]


class Lion(Optimizer):
    """Chen et al. 2023, algorithm 2, which torch.optim does not have."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = beta1 * m + (1 - beta1) * p.grad
                p.sub_(group["lr"] * (torch.sign(c) + group["weight_decay"] * p))
                self.state[p]["m"] = beta2 * m + (1 - beta2) * p.grad


class LAMB(Optimizer):
    """You et al. 2020, algorithm 2, with phi the identity."""

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps,
                                      "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                state["m"] = beta1 * state["m"] + (1 - beta1) * p.grad
                state["v"] = beta2 * state["v"] + (1 - beta2) * p.grad ** 2
                m = state["m"] / (1 - beta1 ** state["t"])
                v = state["v"] / (1 - beta2 ** state["t"])
                r = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                trust = p.norm() / r.norm() if p.norm() > 0 and r.norm() > 0 else 1.0
                p.sub_(group["lr"] * trust * r)


class LARC(Optimizer):
    """SGD with momentum, whose weights have local rates (You et al. 2017) as NVIDIA's apex bounds
    them. `weights` are the names of those; all others are changed by plain SGD."""

    def __init__(self, parameters, weights, lr, momentum=0.9, trust=0.02, weight_decay=0.0,
                 clip=True, eps=1e-8):
        super().__init__(list(parameters.values()), {"lr": lr})
        self.weights = [parameters[name] for name in weights]
        self.options = momentum, trust, weight_decay, clip, eps

    @torch.no_grad()
    def step(self):
        momentum, trust, weight_decay, clip, eps = self.options
        lr = self.param_groups[0]["lr"]
        for p in self.param_groups[0]["params"]:
            if p.grad is None:
                continue
            if not any(p is weight for weight in self.weights):
                p.sub_(lr * p.grad)
                continue
            change = p.grad + weight_decay * p
            local = trust * p.norm() / (p.grad.norm() + weight_decay * p.norm() + eps)
            change = change * (min(local / lr, 1) if clip else local)
            buffer = self.state[p].get("buffer", torch.zeros_like(p))
            self.state[p]["buffer"] = momentum * buffer + change
            p.sub_(lr * self.state[p]["buffer"])


class PlainLAMB(LAMB):
    """LAMB without bias correction, with a bound on the norm of weights; AdamW for the rest."""

    def __init__(self, parameters, lr, weight_decay, bound):
        super().__init__([parameters["fc.weight"]], lr, weight_decay=weight_decay)
        self.rest = AdamW([parameters["fc.bias"], parameters["scale"]], lr=lr, weight_decay=0)
        self.bound = bound

    @torch.no_grad()
    def step(self):
        self.rest.step()
        group = self.param_groups[0]
        beta1, beta2 = group["betas"]
        for p in group["params"]:
            state = self.state[p]
            state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * p.grad
            state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * p.grad ** 2
            r = state["m"] / (state["v"].sqrt() + group["eps"]) + group["weight_decay"] * p
            p.sub_(group["lr"] * p.norm().clamp(0, self.bound) / r.norm() * r)


class MuonAndAdamW(Muon):
    """Muon for parameters of two or more dimensions, flattened to matrices; AdamW for the rest, and
    for `others`, names with rates of their own. The bias has no weight decay."""

    def __init__(self, parameters, others={}, adamw_lr=3e-4, betas=(0.9, 0.999),
                 eps_adamw=1e-8, weight_decay=0.1, **options):
        matrices = [name for name, p in parameters.items() if p.ndim > 1 and name not in others]
        self.matrices = [(parameters[name], parameters[name].detach().flatten(1))
                         for name in matrices]
        super().__init__([matrix for _, matrix in self.matrices], weight_decay=weight_decay,
                         **options)
        rest = [{"params": [p], "lr": others.get(name, adamw_lr),
                 "weight_decay": 0.0 if name == "fc.bias" else weight_decay}
                for name, p in parameters.items() if name not in matrices]
        self.rest = AdamW(rest, betas=betas, eps=eps_adamw)

    @torch.no_grad()
    def step(self):
        self.rest.step()
        for p, matrix in self.matrices:
            matrix.grad = p.grad.flatten(1)
        super().step()


NO_DECAY = 'groups: [{match: "bias$", weight_decay: 0}]'

MATRIX_CASES = {
    "muon": ("{class: Muon, " + NO_DECAY + "}", MuonAndAdamW),
    "muon_options": ("{class: Muon, lr: 0.02, weight_decay: 0.3, momentum: 0.8, nesterov: false, "
                     "ns_coefficients: [3, -3.2, 1.2], ns_steps: 7, eps: 1e-3, adjust_lr_fn: "
                     "match_rms_adamw, adamw_lr: 0.05, adamw_betas: [0.8, 0.9], adamw_eps: 1e-4, "
                     + NO_DECAY + "}",
                     lambda p: MuonAndAdamW(p, lr=0.02, weight_decay=0.3, momentum=0.8,
                                            nesterov=False, ns_coefficients=(3, -3.2, 1.2),
                                            ns_steps=7, eps=1e-3, adjust_lr_fn="match_rms_adamw",
                                            adamw_lr=0.05, betas=(0.8, 0.9), eps_adamw=1e-4)),
    "muon_cosine_missing": ("{class: Muon, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}, "
                            "weight_decay: 0, adamw_lr: 0.01}",
                            lambda p: MuonAndAdamW(p, lr=0.05, weight_decay=0, adamw_lr=0.01)),
    "muon_groups": ("{class: Muon, lr: 0.02, adamw_lr: 0.01, groups: [{match: tall, adapt: false, "
                    'adamw_lr: 0.1}, {match: "bias$", weight_decay: 0}]}',
                    lambda p: MuonAndAdamW(p, {"tall.weight": 0.1}, lr=0.02, adamw_lr=0.01)),
    "adafactor": ("{class: Adafactor}", lambda p: Adafactor(one_group(p))),
    "adafactor_missing": ("{class: Adafactor, lr: 0.5, beta2_decay: -0.5, eps: [1e-3, 0.1], d: 2, "
                          "weight_decay: 0.1}",
                          lambda p: Adafactor(one_group(p), lr=0.5, beta2_decay=-0.5,
                                              eps=(1e-3, 0.1), d=2, weight_decay=0.1)),
    "adafactor_cosine": ("{class: Adafactor, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}, "
                         "eps: [null, 0.01]}",
                         lambda p: Adafactor(one_group(p), lr=0.05, eps=(None, 0.01))),
    "adafactor_groups": ('{class: Adafactor, lr: 0.05, weight_decay: 0.3, '
                         'groups: [{match: "bias$", weight_decay: 0, lr: 0.2}]}',
                         lambda p: Adafactor([{"params": [p["fc.bias"]], "weight_decay": 0.0,
                                               "lr": 0.2},
                                              {"params": [p[n] for n in p if n != "fc.bias"]}],
                                             lr=0.05, weight_decay=0.3)),
}


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
    "adagrad": ("{class: Adagrad, lr: 0.1}", lambda p: Adagrad(one_group(p), lr=0.1)),
    "adagrad_missing": ("{class: Adagrad, lr: 0.1, lr_decay: 0.1, weight_decay: 0.05, eps: 1e-4}",
                        lambda p: Adagrad(one_group(p), lr=0.1, lr_decay=0.1, weight_decay=0.05,
                                          eps=1e-4)),
    "rmsprop": ("{class: RMSprop}", lambda p: RMSprop(one_group(p))),
    "rmsprop_missing": ("{class: RMSprop, lr: 0.02, alpha: 0.9, eps: 1e-4, weight_decay: 0.05, "
                        "momentum: 0.8, centered: true}",
                        lambda p: RMSprop(one_group(p), lr=0.02, alpha=0.9, eps=1e-4,
                                          weight_decay=0.05, momentum=0.8, centered=True)),
    "rmsprop_momentum": ("{class: RMSprop, lr: 0.02, momentum: 0.8}",
                         lambda p: RMSprop(one_group(p), lr=0.02, momentum=0.8)),
    "nadam": ("{class: NAdam}", lambda p: NAdam(one_group(p))),
    "nadam_missing": ("{class: NAdam, lr: 0.05, betas: [0.8, 0.9], eps: 1e-4, weight_decay: 0.1, "
                      "momentum_decay: 0.1}",
                      lambda p: NAdam(one_group(p), lr=0.05, betas=(0.8, 0.9), eps=1e-4,
                                      weight_decay=0.1, momentum_decay=0.1)),
    "nadam_cosine": ("{class: NAdam, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}, "
                        "weight_decay: 0.1, decoupled_weight_decay: true}",
                        lambda p: NAdam(one_group(p), lr=0.05, weight_decay=0.1,
                                        decoupled_weight_decay=True)),
    "radam": ("{class: RAdam}", lambda p: RAdam(one_group(p))),
    "radam_missing": ("{class: RAdam, lr: 0.05, betas: [0.8, 0.9], eps: 1e-4, weight_decay: 0.1}",
                      lambda p: RAdam(one_group(p), lr=0.05, betas=(0.8, 0.9), eps=1e-4,
                                      weight_decay=0.1)),
    "radam_decoupled": ("{class: RAdam, lr: 0.05, weight_decay: 0.1, decoupled_weight_decay: true}",
                        lambda p: RAdam(one_group(p), lr=0.05, weight_decay=0.1,
                                        decoupled_weight_decay=True)),
    "adamax": ("{class: Adamax}", lambda p: Adamax(one_group(p))),
    "adamax_missing": ("{class: Adamax, lr: 0.05, betas: [0.8, 0.9], eps: 1e-4, weight_decay: 0.1}",
                       lambda p: Adamax(one_group(p), lr=0.05, betas=(0.8, 0.9), eps=1e-4,
                                        weight_decay=0.1)),
    "adadelta": ("{class: Adadelta}", lambda p: Adadelta(one_group(p))),
    "adadelta_missing": ("{class: Adadelta, lr: 0.5, rho: 0.8, eps: 1e-4, weight_decay: 0.1}",
                         lambda p: Adadelta(one_group(p), lr=0.5, rho=0.8, eps=1e-4,
                                            weight_decay=0.1)),
    "lion": ("{class: Lion, lr: 0.01}", lambda p: Lion(one_group(p), lr=0.01)),
    "lion_missing": ("{class: Lion, lr: 0.01, betas: [0.8, 0.9], weight_decay: 0.3}",
                     lambda p: Lion(one_group(p), lr=0.01, betas=(0.8, 0.9), weight_decay=0.3)),
    "lamb": ("{class: LAMB, lr: 0.05}", lambda p: LAMB(one_group(p), lr=0.05)),
    "lamb_missing": ("{class: LAMB, lr: 0.05, betas: [0.5, 0.9], eps: 1e-4, weight_decay: 0.1}",
                     lambda p: LAMB(one_group(p), lr=0.05, betas=(0.5, 0.9), eps=1e-4,
                                    weight_decay=0.1)),
    "lamb_plain": ("{class: LAMB, lr: 0.05, weight_decay: 0.1, bias_correction: false, "
                   'max_weight_norm: 1.5, groups: [{match: ["bias$", "^scale$"], adapt: false, '
                   "weight_decay: 0}]}",
                   lambda p: PlainLAMB(p, lr=0.05, weight_decay=0.1, bound=1.5)),
    "lars": ("{class: LARS}", lambda p: LARC(p, ["fc.weight"], lr=0.1)),
    "lars_decay": ("{class: LARS, lr: 0.5, momentum: 0.5, trust_coefficient: 0.1, "
                   "weight_decay: 0.3}",
                   lambda p: LARC(p, ["fc.weight"], lr=0.5, momentum=0.5, trust=0.1,
                                  weight_decay=0.3)),
    "lars_cosine": ("{class: LARS, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}, "
                    "trust_coefficient: 0.05}",
                    lambda p: LARC(p, ["fc.weight"], lr=0.05, trust=0.05)),
    "asgd": ("{class: ASGD}", lambda p: ASGD(one_group(p))),
    "asgd_missing": ("{class: ASGD, lr: 0.1, lambd: 0.01, alpha: 0.5, t0: 5, weight_decay: 0.1}",
                     lambda p: ASGD(one_group(p), lr=0.1, lambd=0.01, alpha=0.5, t0=5,
                                    weight_decay=0.1)),
    "asgd_cosine": ("{class: ASGD, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}}",
                    lambda p: ASGD(one_group(p), lr=0.05)),
    "rprop": ("{class: Rprop}", lambda p: Rprop(one_group(p))),
    "rprop_missing": ("{class: Rprop, lr: 0.1, etas: [0.3, 1.5], step_sizes: [0.05, 0.5]}",
                      lambda p: Rprop(one_group(p), lr=0.1, etas=(0.3, 1.5),
                                      step_sizes=(0.05, 0.5))),
    "lars_scaled_missing": ("{class: LARS, lr: 0.5, momentum: 0, clip: false, weight_decay: 0.1, "
                            "groups: [{match: bias, adapt: true}]}",
                            lambda p: LARC(p, ["fc.weight", "fc.bias"], lr=0.5, momentum=0,
                                           clip=False, weight_decay=0.1)),
}


SCHEDULE_FREE_CASES = {
    "default": ("ScheduleFreeAdamW", {}),
    "options": ("{class: ScheduleFreeAdamW, lr: 0.05, betas: [0.8, 0.9], eps: 1e-4, weight_decay: "
                "0.1, r: 1, weight_lr_power: 1}",
                {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-4, "weight_decay": 0.1, "r": 1,
                 "weight_lr_power": 1}),
    "cosine": ("{class: ScheduleFreeAdamW, lr: {class: cosine, from: 0.05, to: 0.001, steps: 20}}",
               {"lr": 0.05}),
    "warmup": ("{class: ScheduleFreeAdamW, lr: {class: warmup, from: 0.01, to: 0.05, steps: 4}}",
               {"lr": 0.05, "warmup_steps": 5}),
    "from_zero": ("{class: ScheduleFreeAdamW, lr: {class: warmup, to: 0.05, steps: 5}}",
                  {"lr": 0.05}),
}


def averages_of(optimizer, parameter):
    """What optimizer.eval() would put into the parameter, which stays."""
    if "z" not in optimizer.state[parameter]:
        return parameter.detach().clone()
    beta1, _ = optimizer.param_groups[0]["betas"]
    return parameter.detach().lerp(optimizer.state[parameter]["z"], 1 - 1 / beta1)


def make_schedule_free():
    from schedulefree import AdamWScheduleFree
    cases = {case: (config, lambda p, options=options: AdamWScheduleFree(one_group(p), **options))
             for case, (config, options) in SCHEDULE_FREE_CASES.items()}
    make_trajectories("schedule_free.safetensors", MATRIX_SHAPES, cases)


def make_trajectories(file, shapes, cases):
    torch.manual_seed(0)
    start = {name: torch.randn(shape) for name, shape in shapes.items()}
    gradients = {name: torch.randn((STEPS, *shape)) for name, shape in shapes.items()}
    tensors = {f"start/{name}": value for name, value in start.items()}
    tensors |= {f"gradient/{name}": value for name, value in gradients.items()}
    for case, (config, make) in cases.items():
        parameters = {name: value.clone().requires_grad_() for name, value in start.items()}
        optimizer = make(parameters)
        scheduler = CosineAnnealingLR(optimizer, 20, 0.001) if "cosine" in case else None
        trajectory = {name: [] for name in shapes}
        averages = {}
        if hasattr(optimizer, "train"):
            optimizer.train()
            averages = {name: [] for name in shapes}
        if case == "from_zero":
            scheduler = LambdaLR(optimizer, lambda step: min(step / 5, 1))
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
                if averages:
                    averages[name].append(averages_of(optimizer, parameter))
        tensors |= {f"{case}/averages/{name}": torch.stack(values)
                    for name, values in averages.items()}
        tensors |= {f"{case}/{name}": torch.stack(values) for name, values in trajectory.items()}
    save_file(tensors, FOLDER / file, {case: config for case, (config, _) in cases.items()})


def values_of(make, lr=1.0, steps=60):
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = make(optimizer)
    values = []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(values) < steps:  # OneCycleLR refuses to go beyond its end
            scheduler.step()
    return torch.tensor(values, dtype=torch.float64)


def chained(optimizer):
    parts = [LinearLR(optimizer, 0.1, 1.0, 10), ConstantLR(optimizer, 1.0, 1),
             CosineAnnealingLR(optimizer, 30, 0.01)]
    return SequentialLR(optimizer, parts, [10, 30])


def step_with_restarts(t):
    """Milestones 10, 20, 30, 45 by 0.5; restarts 15 and 40 with the weights 0.8 and 0.3."""
    value = 1.0
    for step in range(t + 1):
        if step in (10, 20, 30, 45):
            value *= 0.5
        if step in (15, 40):
            value = {15: 0.8, 40: 0.3}[step]
    return value


def falls_with_restarts(t):
    """Of 12, 10 and 30 steps to 0.02 from 0.5, beginning at 0, 20 and 30."""
    begin, length, weight = max((b, n, w) for b, n, w in
                                [(0, 12, 1.0), (20, 10, 0.5), (30, 30, 0.25)] if b <= t)
    part = min((t - begin) / length, 1)
    return (0.02 + (0.5 * weight - 0.02) * (1 + math.cos(math.pi * part)) / 2) / 0.5


SCHEDULES = {
    "constant": ("{class: constant, value: 0.3}", lambda o: LambdaLR(o, lambda step: 1.0), 0.3),
    "warmup": ("{class: warmup, from: 0.05, to: 0.5, steps: 12}", lambda o: LinearLR(o, 0.1, 1, 12),
               0.5),
    "linear": ("{class: linear, from: 0.5, to: 0.1, steps: 25}",
               lambda o: LinearLR(o, 1.0, 0.2, 25), 0.5),
    "StepLR": ("{class: StepLR, from: 0.5, step_size: 7, gamma: 0.3}",
               lambda o: StepLR(o, 7, 0.3), 0.5),
    "MultiStepLR": ("{class: MultiStepLR, from: 0.5, milestones: [40, 5, 6, 6]}",
                    lambda o: MultiStepLR(o, [40, 5, 6, 6]), 0.5),
    "ConstantLR": ("{class: ConstantLR, from: 0.5, factor: 0.3, total_iters: 9}",
                   lambda o: ConstantLR(o, 0.3, 9), 0.5),
    "ConstantLR_defaults": ("{class: ConstantLR, from: 0.5}", lambda o: ConstantLR(o), 0.5),
    "LinearLR": ("{class: LinearLR, from: 0.5, start_factor: 0.2, end_factor: 0.7, total_iters: 9}",
                 lambda o: LinearLR(o, 0.2, 0.7, 9), 0.5),
    "LinearLR_defaults": ("{class: LinearLR, from: 0.5}", lambda o: LinearLR(o), 0.5),
    "ExponentialLR": ("{class: ExponentialLR, from: 0.5, gamma: 0.93}",
                      lambda o: ExponentialLR(o, 0.93), 0.5),
    "PolynomialLR": ("{class: PolynomialLR, from: 0.5, power: 2.5, total_iters: 40}",
                     lambda o: PolynomialLR(o, 40, 2.5), 0.5),
    "CosineAnnealingLR": ("{class: CosineAnnealingLR, from: 0.5, T_max: 17, eta_min: 0.02}",
                          lambda o: CosineAnnealingLR(o, 17, 0.02), 0.5),
    "WarmRestarts": ("{class: CosineAnnealingWarmRestarts, from: 0.5, T_0: 7, T_mult: 2, eta_min: "
                     "0.02}", lambda o: CosineAnnealingWarmRestarts(o, 7, 2, 0.02), 0.5),
    "CyclicLR": ("{class: CyclicLR, base_lr: 0.1, max_lr: 0.5, step_size_up: 7}",
                 lambda o: CyclicLR(o, 0.1, 0.5, 7, cycle_momentum=False), 0.1),
    "CyclicLR_lower": ("{class: CyclicLR, base_lr: 0.1, max_lr: 0.5, step_size_up: 7, "
                       "step_size_down: 4, mode: triangular2}",
                       lambda o: CyclicLR(o, 0.1, 0.5, 7, 4, "triangular2", cycle_momentum=False),
                       0.1),
    "CyclicLR_range": ("{class: CyclicLR, base_lr: 0.1, max_lr: 0.5, step_size_up: 4, "
                       "step_size_down: 9, mode: exp_range, gamma: 0.97}",
                       lambda o: CyclicLR(o, 0.1, 0.5, 4, 9, "exp_range", 0.97,
                                          cycle_momentum=False), 0.1),
    "step": ("{class: step, from: 0.5, factor: 0.3, every: 7}", lambda o: StepLR(o, 7, 0.3), 0.5),
    "exponential": ("{class: step, from: 0.5, factor: 0.9, every: 1}",
                    lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9), 0.5),
    "multi_step": ("{class: step, from: 0.5, at: [5, 6, 40]}", lambda o: MultiStepLR(o, [5, 6, 40]),
                   0.5),
    "cosine": ("{class: cosine, from: 0.5, to: 0.02, steps: 59}",
               lambda o: CosineAnnealingLR(o, 59, 0.02), 0.5),
    "exponential_gamma": ("{class: exponential, from: 0.5, gamma: 0.93}",
                          lambda o: ExponentialLR(o, 0.93), 0.5),
    "polynomial": ("{class: polynomial, from: 0.5, power: 2.5, steps: 40}",
                   lambda o: PolynomialLR(o, 40, 2.5), 0.5),
    "one_cycle": ("{class: one_cycle, max: 0.5, steps: 60}",
                  lambda o: OneCycleLR(o, 0.5, total_steps=60), 0.02),
    "one_cycle_linear": ("{class: one_cycle, max: 0.5, steps: 60, pct_start: 0.41, div_factor: 5, "
                         "final_div_factor: 20, anneal: linear}",
                         lambda o: OneCycleLR(o, 0.5, total_steps=60, pct_start=0.41, div_factor=5,
                                              final_div_factor=20, anneal_strategy="linear"), 0.1),
    "cosine_restarts": ("{class: cosine_restarts, from: 0.5, to: 0.02, steps: 7, longer: 2}",
                        lambda o: CosineAnnealingWarmRestarts(o, 7, 2, 0.02), 0.5),
    "cosine_restarts_equal": ("{class: cosine_restarts, from: 0.5, steps: 9}",
                              lambda o: CosineAnnealingWarmRestarts(o, 9), 0.5),
    "inverse_sqrt": ("{class: chain, parts: ["
                     "{schedule: {class: warmup, from: 0, to: 0.5, steps: 10}, steps: 10}, "
                     "{schedule: {class: inverse_sqrt, from: 0.5, steps: 10}}]}",
                     lambda o: LambdaLR(o, lambda t: min(t / 10, (10 / max(t, 1)) ** 0.5)), 0.5),
    "step_restarts": ("{class: step, from: 0.5, factor: 0.5, at: [10, 20, 30, 45], "
                      "restarts: [15, 40], weights: [0.8, 0.3]}",
                      lambda o: LambdaLR(o, step_with_restarts), 0.5),
    "step_every_restarts": ("{class: step, from: 0.5, factor: 0.5, every: 7, restarts: [10]}",
                            lambda o: LambdaLR(o, lambda t: 0.5 ** ((t if t < 10 else t - 10) // 7)),
                            0.5),
    "cosine_restarts_at": ("{class: cosine_restarts, from: 0.5, to: 0.02, steps: [12, 10, 30], "
                           "restarts: [20, 30], weights: [0.5, 0.25]}",
                           lambda o: LambdaLR(o, falls_with_restarts), 0.5),
    "ramp": ("{class: ramp, steps: 8, from: 0.25, schedule: {class: step, from: 0.5, factor: 0.1, "
             "at: [5, 20]}}",
             lambda o: LambdaLR(o, lambda t: min(1, 0.25 + 0.75 * t / 8) * 0.1 ** ((t >= 5) +
                                                                                  (t >= 20))),
             0.5),
    "chain": ("{class: chain, parts: ["
              "{schedule: {class: warmup, from: 0.1, to: 1, steps: 10}, steps: 10}, "
              "{schedule: 1, steps: 20}, "
              "{schedule: {class: cosine, from: 1, to: 0.01, steps: 30}}]}", chained, 1.0),
}


def make_schedules():
    save_file({name: values_of(make, lr) for name, (_, make, lr) in SCHEDULES.items()},
              FOLDER / "schedules.safetensors",
              {name: config for name, (config, _, _) in SCHEDULES.items()})


# With `per: epoch`, of schedulers that are stepped once an epoch.
PER_EPOCH = {
    "ExponentialLR": ("{class: ExponentialLR, from: 0.5, gamma: 0.95",
                      lambda o: ExponentialLR(o, 0.95), 0.5),
    "exponential": ("{class: exponential, from: 0.5, gamma: 0.8",
                    lambda o: ExponentialLR(o, 0.8), 0.5),
    "exponential_warmup": ("{class: exponential, from: 0.5, gamma: 0.8, warmup: 4e",
                           lambda o: LambdaLR(o, lambda t: t / 4 if t < 4 else 0.8 ** (t - 4)),
                           0.5),
    "CyclicLR_range": ("{class: CyclicLR, base_lr: 0.1, max_lr: 0.5, step_size_up: 3e, mode: "
                       "exp_range, gamma: 0.9",
                       lambda o: CyclicLR(o, 0.1, 0.5, 3, mode="exp_range", gamma=0.9,
                                          cycle_momentum=False), 0.1),
    "CyclicLR": ("{class: CyclicLR, base_lr: 0.1, max_lr: 0.5, step_size_up: 3e, step_size_down: "
                 "5e, mode: triangular2",
                 lambda o: CyclicLR(o, 0.1, 0.5, 3, 5, "triangular2", cycle_momentum=False), 0.1),
    "ConstantLR_defaults": ("{class: ConstantLR, from: 0.5", lambda o: ConstantLR(o), 0.5),
    "LinearLR_defaults": ("{class: LinearLR, from: 0.5", lambda o: LinearLR(o), 0.5),
    "PolynomialLR_defaults": ("{class: PolynomialLR, from: 0.5, power: 2",
                              lambda o: PolynomialLR(o, power=2), 0.5),
    "PolynomialLR": ("{class: PolynomialLR, from: 0.5, total_iters: 12e",
                     lambda o: PolynomialLR(o, 12), 0.5),
    "StepLR": ("{class: StepLR, from: 0.5, step_size: 3e", lambda o: StepLR(o, 3), 0.5),
    "MultiStepLR": ("{class: MultiStepLR, from: 0.5, milestones: [2e, 9e]",
                    lambda o: MultiStepLR(o, [2, 9]), 0.5),
    "CosineAnnealingLR": ("{class: CosineAnnealingLR, from: 0.5, T_max: 6e, eta_min: 0.02",
                          lambda o: CosineAnnealingLR(o, 6, 0.02), 0.5),
    "WarmRestarts": ("{class: CosineAnnealingWarmRestarts, from: 0.5, T_0: 2e, T_mult: 2",
                     lambda o: CosineAnnealingWarmRestarts(o, 2, 2), 0.5),
    "one_cycle": ("{class: one_cycle, max: 0.5, steps: 12e",
                  lambda o: OneCycleLR(o, 0.5, total_steps=12), 0.02),
    "one_cycle_linear": ("{class: one_cycle, max: 0.5, steps: end, pct_start: 0.41, anneal: linear",
                         lambda o: OneCycleLR(o, 0.5, total_steps=12, pct_start=0.41,
                                              anneal_strategy="linear"), 0.02),
    "chain": ("{class: chain, parts: [{schedule: {class: LinearLR, from: 0.5, start_factor: 0.1}, "
              "steps: 5e}, {schedule: {class: ExponentialLR, from: 0.5, gamma: 0.7}}]",
              lambda o: SequentialLR(o, [LinearLR(o, 0.1), ExponentialLR(o, 0.7)], [5]), 0.5),
}


def make_per_epoch():
    save_file({name: values_of(make, lr, 12) for name, (_, make, lr) in PER_EPOCH.items()},
              FOLDER / "per_epoch.safetensors",
              {name: config + ", per: epoch}" for name, (config, _, _) in PER_EPOCH.items()})


PLATEAUS = {
    "min": ("{class: plateau, from: 0.5, metric: m, patience: 2}", {"patience": 2}),
    "max": ("{class: plateau, from: 0.5, metric: m, mode: max, patience: 1, factor: 0.5, "
            "threshold: 0.1, threshold_mode: abs, cooldown: 3, min: 0.01}",
            {"mode": "max", "patience": 1, "factor": 0.5, "threshold": 0.1,
             "threshold_mode": "abs", "cooldown": 3, "min_lr": 0.01}),
    "rel": ("{class: plateau, from: 0.5, metric: m, patience: 0, factor: 0.7, threshold: 0.2}",
            {"patience": 0, "factor": 0.7, "threshold": 0.2}),
}


def make_plateaus():
    torch.manual_seed(1)
    metric = torch.rand(60, dtype=torch.float64) + torch.linspace(1, 0, 60, dtype=torch.float64)
    metric[[0, 20]] = float("nan")
    tensors = {"metric": metric}
    for name, (_, options) in PLATEAUS.items():
        optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = ReduceLROnPlateau(optimizer, **options)
        values = []
        for value in metric.tolist():
            scheduler.step(value)
            values.append(optimizer.param_groups[0]["lr"])
        tensors[name] = torch.tensor(values, dtype=torch.float64)
    save_file(tensors, FOLDER / "plateaus.safetensors",
              {name: config for name, (config, _) in PLATEAUS.items()})


if __name__ == "__main__":
    make_plateaus()
    make_trajectories("trajectories.safetensors", SHAPES, CASES)
    make_trajectories("matrices.safetensors", MATRIX_SHAPES, MATRIX_CASES)
    make_schedule_free()
    make_schedules()
    make_per_epoch()
