"""Makes what tests/runtime/train/optim/passes_test.cpp compares with, by torch.optim itself:
    python tests/data/optim/make_passes.py
writes lbfgs.safetensors and sparse.safetensors beside this file. The metadata of both holds the
config of every case, in YAML.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch.optim import LBFGS, Adam, SparseAdam

FOLDER = pathlib.Path(__file__).parent
STEPS = 6
LBFGS_CASES = {
    "default": {},
    "short": {"lr": 0.5, "max_iter": 4, "history_size": 3},
    "wolfe": {"line_search_fn": "strong_wolfe"},
    "wolfe_short": {"lr": 2.0, "max_iter": 5, "max_eval": 7, "history_size": 2,
                    "line_search_fn": "strong_wolfe"},
    "tolerant": {"line_search_fn": "strong_wolfe", "tolerance_grad": 0.01,
                 "tolerance_change": 0.001},
}
SPARSE_CASES = {
    "default": {},
    "options": {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-4},
}


def config_of(name, options):
    items = [f"{key}: {list(value) if isinstance(value, tuple) else value}"
             for key, value in options.items()]
    return "{" + ", ".join([f"class: {name}", *items]) + "}"


def make_lbfgs():
    """A network with one hidden layer, in float64; each step has its own examples."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    # In the order of their names, as the file has them: sums of products are then the same bits.
    start = {"bias": torch.randn(5), "hidden": torch.randn(5, 3), "out": torch.randn(1, 5)}
    tensors = {f"start/{name}": value for name, value in start.items()}
    tensors |= {"x": torch.randn(STEPS, 16, 3), "y": torch.randn(STEPS, 16, 1)}
    for case, options in LBFGS_CASES.items():
        parameters = {name: value.clone().requires_grad_() for name, value in start.items()}
        optimizer = LBFGS(parameters.values(), **options)
        for step in range(STEPS):
            def closure():
                optimizer.zero_grad()
                hidden = (tensors["x"][step] @ parameters["hidden"].T + parameters["bias"]).tanh()
                loss = (hidden @ parameters["out"].T - tensors["y"][step]).square().mean()
                loss.backward()
                return loss

            optimizer.step(closure)
            for name, parameter in parameters.items():
                tensors[f"{case}/{step}/{name}"] = parameter.detach().clone()
    torch.set_default_dtype(torch.float32)
    save_file(tensors, FOLDER / "lbfgs.safetensors",
              {case: config_of("LBFGS", options) for case, options in LBFGS_CASES.items()})


def make_sparse():
    """An embedding, of which each step names some rows, and a dense vector, by Adam."""
    torch.manual_seed(0)
    start = {"embedding": torch.randn(10, 3), "scale": torch.randn(3)}
    tensors = {f"start/{name}": value for name, value in start.items()}
    tensors |= {"rows": torch.randint(0, 10, (STEPS, 4)), "target": torch.randn(STEPS, 4, 3)}
    tensors["rows"][1] = tensors["rows"][1, 0]  # one row several times
    for case, options in SPARSE_CASES.items():
        parameters = {name: value.clone().requires_grad_() for name, value in start.items()}
        optimizers = [SparseAdam([parameters["embedding"]], **options),
                      Adam([parameters["scale"]], **options)]
        for step in range(STEPS):
            found = torch.nn.functional.embedding(tensors["rows"][step], parameters["embedding"],
                                                  sparse=True)
            loss = (found * parameters["scale"] - tensors["target"][step]).square().mean()
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            for name, parameter in parameters.items():
                tensors[f"{case}/{step}/{name}"] = parameter.detach().clone()
    save_file(tensors, FOLDER / "sparse.safetensors",
              {case: config_of("SparseAdam", options) for case, options in SPARSE_CASES.items()})


if __name__ == "__main__":
    make_lbfgs()
    make_sparse()
