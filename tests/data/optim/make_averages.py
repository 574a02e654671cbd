"""Makes averages.safetensors: what ema_pytorch's own EMA averages in 30 updates.
    python tests/data/optim/make_averages.py [OLD]
OLD is a folder with ema_pytorch 0.5.3, whose first update behind update_after_step copies the
weights; the others are of the installed one, 0.8.3. `weights` [30, 4] are a model's weights after
each step; <name> [30, 4] its averages after each update; the metadata has the decay of each here.
"""

import importlib
import pathlib
import sys

import torch
from safetensors.torch import save_file

UPDATES = 30
FILE = pathlib.Path(__file__).parent / "averages.safetensors"

CASES = {  # of EMA: beta, power, min_value, inv_gamma, update_after_step, update_every
    "game_gen": (0.9999, 3 / 4, 0, 1, 1, 1),
    "low": (0.9, 3 / 4, 0, 1, 3, 1),
    "seldom": (0.99, 1, 0.5, 2, 3, 5),
    "even": (0.99, 1, 0.5, 2, 4, 2),
    "at_once": (0.95, 2 / 3, 0, 1, 0, 1),
    "defaults": (0.9999, 2 / 3, 0, 1, 100, 10),
}


def walk():
    torch.manual_seed(0)
    return torch.randn(UPDATES, 4, dtype=torch.float64).cumsum(0)


def averages(package, weights, beta, power, min_value, inv_gamma, after, every):
    model = torch.nn.Linear(4, 1, bias=False).double()
    ema = package.EMA(model, beta=beta, power=power, min_value=min_value, inv_gamma=inv_gamma,
                      update_after_step=after, update_every=every)
    seen = []
    for each in weights:
        model.weight.data.copy_(each)
        ema.update()
        seen.append(ema.ema_model.weight.data.flatten().clone())
    return torch.stack(seen)


def main():
    weights = walk()
    tensors, metadata = {"weights": weights}, {}
    for old in (False, True):
        if old:
            for name in [name for name in sys.modules if name.startswith("ema_pytorch")]:
                del sys.modules[name]
            sys.path.insert(0, sys.argv[1])
        package = importlib.import_module("ema_pytorch")
        for name, (beta, power, least, inv_gamma, after, every) in CASES.items():
            name = f"{name}_old" if old else name
            tensors[name] = averages(package, weights, beta, power, least, inv_gamma, after, every)
            metadata[name] = (f"{{class: power_law, max: {beta}, power: {power}, min: {least}, "
                              f"inv_gamma: {inv_gamma}, update_after_step: {after}, update_every: "
                              f"{every}{', copies_first: true' if old else ''}}}")
    save_file(tensors, FILE, metadata)


if __name__ == "__main__":
    main()
