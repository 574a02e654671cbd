"""toy_srgan in PyTorch, by a loop that does in each iteration what DL-Art-School's ExtensibleTrainer
does: a state of lists of chunks, injectors and losses called through dictionaries, flags of gradients
set on every parameter in every step, each loss looked at for NaN and kept for the log, outputs cloned
for later steps, gradients clipped by group, averages (ema) of all networks after every step.

    dlas_loop.py THREADS

Answers each line with a number of iterations on standard input with the seconds that they took.
"""

import copy
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

PARTS = 2
NOISE = 0.004


class Generator(nn.Module):
    def __init__(self, nf=8, scale=2):
        super().__init__()
        self.conv1 = nn.Conv2d(3, nf, 3, padding=1)
        self.norm = nn.BatchNorm2d(nf)
        self.conv2 = nn.Conv2d(nf, 3 * scale * scale, 3, padding=1)
        self.scale = scale

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        return F.pixel_shuffle(self.conv2(x), self.scale)


class Discriminator(nn.Module):
    def __init__(self, nf=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, nf, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(nf, nf, 3, stride=2, padding=1)
        self.linear = nn.Linear(nf, 1)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.2)
        x = F.leaky_relu(self.conv2(x), 0.2)
        return self.linear(x.mean((2, 3)))


class Noise(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return {"hq": torch.rand(3, 16, 16), "lq": torch.rand(3, 8, 8), "path": str(index)}


class GeneratorInjector:
    def __init__(self, opt, env):
        self.opt, self.env = opt, env

    def __call__(self, state):
        network = self.env["generators"][self.opt["generator"]]
        if self.opt.get("grad", True):
            return {self.opt["out"]: network(state[self.opt["in"]])}
        was_training = network.training
        network.eval()
        with torch.no_grad():
            made = network(state[self.opt["in"]])
        network.train(was_training)
        return {self.opt["out"]: made}


class PixLoss:
    def __init__(self, opt, env):
        self.opt, self.metrics = opt, []

    def __call__(self, network, state):
        return F.l1_loss(state[self.opt["fake"]].float(), state[self.opt["real"]].float())


class GeneratorGanLoss:
    def __init__(self, opt, env):
        self.opt, self.env, self.metrics = opt, env, []

    def __call__(self, network, state):
        discriminator = self.env["discriminators"][self.opt["discriminator"]]
        fake = state[self.opt["fake"]]
        made = discriminator(fake + torch.rand_like(fake) * self.opt["noise"])
        self.metrics.append(("d_fake", made.mean()))
        return F.binary_cross_entropy_with_logits(made.float(), torch.ones_like(made))


class DiscriminatorGanLoss:
    def __init__(self, opt, env):
        self.opt, self.metrics = opt, []

    def __call__(self, network, state):
        real = state[self.opt["real"]].detach().requires_grad_()
        fake = state[self.opt["fake"]].detach()
        of_real = network(real + torch.rand_like(real) * self.opt["noise"])
        of_fake = network(fake + torch.rand_like(fake) * self.opt["noise"])
        self.metrics += [("d_fake", of_fake.mean()), ("d_real", of_real.mean())]
        loss = (F.binary_cross_entropy_with_logits(of_real, torch.ones_like(of_real))
                + F.binary_cross_entropy_with_logits(of_fake, torch.zeros_like(of_fake)))
        gradient = torch.autograd.grad(of_real, real, torch.ones_like(of_real), create_graph=True,
                                       retain_graph=True)[0]
        penalty = 10 * ((gradient.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
        self.metrics.append(("gradient_penalty", penalty))
        return loss + penalty


COMPONENTS = {"generator": GeneratorInjector, "pix": PixLoss, "generator_gan": GeneratorGanLoss,
              "discriminator_gan": DiscriminatorGanLoss}
OPTIMIZER = {"lr": 1e-3, "betas": (0.9, 0.99)}
STEPS = {
    "discriminator": {
        "training": "discriminator", "clip_grad_eps": 1.0, "step_outputs": ["d_gen"],
        "injectors": {"d_fake": {"type": "generator", "generator": "generator", "grad": False,
                                 "in": "lq", "out": "d_gen"}},
        "losses": {"gan_d": {"type": "discriminator_gan", "weight": 1, "noise": NOISE,
                             "real": "hq", "fake": "d_gen"}}},
    "generator": {
        "training": "generator", "clip_grad_eps": 1.0,
        "injectors": {"g_fake": {"type": "generator", "generator": "generator", "in": "lq",
                                 "out": "gen"}},
        "losses": {"pix": {"type": "pix", "weight": 1, "real": "hq", "fake": "gen"},
                   "gan_g": {"type": "generator_gan", "weight": 0.005, "noise": NOISE,
                             "discriminator": "discriminator", "real": "hq", "fake": "gen"}}}}


class Accumulator:
    """The last 50 values of each metric."""

    def __init__(self):
        self.buffers = {}

    def add(self, name, value):
        count, buffer = self.buffers.setdefault(name, (0, torch.zeros(50)))
        buffer[count % 50] = value.detach().cpu()
        self.buffers[name] = count + 1, buffer


def detached(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return [detached(each) for each in value]
    return None


class Step:
    def __init__(self, opt, env, networks):
        self.opt, self.networks = opt, networks
        self.injectors = [COMPONENTS[o["type"]](o, env) for o in opt["injectors"].values()]
        self.losses = [(name, o, COMPONENTS[o["type"]](o, env)) for name, o in opt["losses"].items()]
        weights, others = [], []
        for module in networks[opt["training"]].modules():
            for name, parameter in module.named_parameters(recurse=False):
                is_other = name == "bias" or isinstance(module, nn.BatchNorm2d)
                (others if is_other else weights).append(parameter)
        self.optimizer = torch.optim.AdamW(
            [{"params": weights, "weight_decay": 0.0}, {"params": others, "weight_decay": 0.0}],
            **OPTIMIZER)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)
        self.metrics = Accumulator()

    def forward_backward(self, state, part):
        local = {key: values[part] for key, values in state.items()}
        network = self.networks[self.opt["training"]]
        made = {}
        for injector in self.injectors:
            out = injector(local)
            local.update(out)
            made.update(out)
        total = 0
        for name, opt, loss in self.losses:
            value = loss(network, local)
            if not value.isfinite():
                print("non-finite loss", name, file=sys.stderr)
            total = total + value * opt["weight"]
            self.metrics.add("loss_" + name, value)
            for metric, number in loss.metrics:
                self.metrics.add(f"loss_{name}_{metric}", number)
            loss.metrics.clear()
        if total.isfinite():
            self.metrics.add(f"loss_{self.opt['training']}_total", total)
            self.scaler.scale(total / PARTS).backward()
        made = {key: detached(value) for key, value in made.items()}
        if "step_outputs" in self.opt:
            made = {key: made[key] for key in self.opt["step_outputs"]}
        return made

    def step(self):
        self.scaler.unscale_(self.optimizer)
        for group in self.optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], self.opt["clip_grad_eps"])
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Trainer:
    def __init__(self):
        self.networks = {"generator": Generator(), "discriminator": Discriminator()}
        env = {"generators": {"generator": self.networks["generator"]},
               "discriminators": {"discriminator": self.networks["discriminator"]}}
        self.steps = [Step(opt, env, self.networks) for opt in STEPS.values()]
        self.averages = {name: copy.deepcopy(net) for name, net in self.networks.items()}
        self.loader = DataLoader(Noise(), batch_size=4, shuffle=True, drop_last=True)
        self.batches = iter(self.loader)

    def iterate(self):
        batch = next(self.batches)
        for step in self.steps:
            step.optimizer.zero_grad()
        state = {key: list(torch.chunk(value, PARTS)) for key, value in batch.items()
                 if isinstance(value, torch.Tensor)}
        for step in self.steps:
            for name, network in self.networks.items():
                for parameter in network.parameters():
                    parameter.requires_grad = name == step.opt["training"]
            step.optimizer.zero_grad()
            made = {}
            for part in range(PARTS):
                for key, value in step.forward_backward(state, part).items():
                    made.setdefault(key, []).append(value)
            state.update(made)
            step.step()
            with torch.no_grad():
                for name, average in self.averages.items():
                    of_network = dict(self.networks[name].named_parameters())
                    for key, value in average.named_parameters():
                        value.mul_(0.999).add_(of_network[key], alpha=0.001)
        for network in self.networks.values():
            network.zero_grad()

    def run(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.iterate()
        return time.perf_counter() - start


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    trainer = Trainer()
    for line in sys.stdin:
        print(trainer.run(int(line)), flush=True)


if __name__ == "__main__":
    main()
