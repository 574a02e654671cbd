"""Compares compiled passes of a network with its graph: results, gradients, and buffers, in the process that compiled."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stepop.eval.export_check import CannotCompile, listed, tensors_of
from stepop.eval.export_gradients import random_loss

#: The largest differences to the graph, of results and of gradients, relative to their size (norms). The sums are the same,
#: in another order; in bfloat16 a pass that keeps more digits between operations differs by some of its steps of 2^-8.
TOLERANCES = {"float32": (1e-4, 1e-3), "bfloat16": (5e-2, 1e-1), "float16": (1e-2, 5e-2)}
#: What a tensor may differ beyond that, in parts of what rounding alone changes in the graph.
NOISE_FACTOR = 4.0
#: A tensor of which rounding changes half is nothing else, such as the mean of what was normalized, or a gradient before a
#: normalization of two different examples: of it only the magnitude is compared.
IS_NOISE = 0.5
#: Steps of the precisions, by which numbers are perturbed.
STEPS = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}
#: A number next to zero may lie on the other side of a ReLU, which no tolerance holds: then other numbers are tried, so often.
#: Other code than the graph's differs each time.
ATTEMPTS = 3


def in_order(tensor: Any, order: Sequence[int]) -> Any:
    """The tensor with its dimensions in this order in memory."""
    back = [list(order).index(place) for place in range(len(order))]
    return tensor.permute(*order).contiguous().permute(*back) if order else tensor


def load(paths: dict[str, str], described: Sequence[dict[str, Any]], device: str) -> Any:
    import torch

    path = paths[described[0]["path"]]
    if device == "cuda":
        return torch._C._aoti.AOTIModelContainerRunnerCuda(path, 1, device)
    return torch._C._aoti.AOTIModelContainerRunnerCpu(path, 1)


class Passes:
    """The passes of one mode, as stepop runs them."""

    def __init__(self, described: dict[str, Any], paths: dict[str, str], tensors: dict[str, Any], device: str) -> None:
        self.described = described
        self.tensors = tensors
        self.forward = load(paths, described["forward"], device)
        self.backward = load(paths, described["backward"], device) if "backward" in described else None

    def __call__(self, *inputs: Any) -> list[Any]:
        import torch

        described = self.described
        taken = [self.tensors[each["tensor"]] if "tensor" in each else in_order(inputs[each["input"]], each["order"])
                 for each in described["inputs"]]
        if self.backward is None:
            return self.results(self.forward.run([each.detach() for each in taken]))
        passes = self

        class Call(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, *all_taken: Any) -> tuple[Any, ...]:
                returned = passes.forward.run([each.detach() for each in all_taken])
                context.kept = [all_taken[each["input"]].detach().clone() if "input" in each else returned[each["result"]]
                                for each in described["saved"]]
                return tuple(passes.results(returned))

            @staticmethod
            def backward(context: Any, *gradients: Any) -> tuple[Any, ...]:
                given = [in_order(gradients[each["output"]], each["order"]) for each in described["tangents"]]
                made = passes.backward.run(context.kept + given)
                by_source = {(source.get("tensor"), source.get("input")): gradient.clone()
                             for source, gradient in zip(described["gradients"], made)}
                return tuple(by_source.get((each.get("tensor"), each.get("input"))) for each in described["inputs"])

        return list(Call.apply(*taken))

    def results(self, returned: Sequence[Any]) -> list[Any]:
        import torch

        outputs: dict[int, Any] = {}
        for each, tensor in zip(self.described["results"], returned):
            if "tensor" in each:
                with torch.no_grad():
                    self.tensors[each["tensor"]].copy_(tensor)
            else:
                outputs[each["output"]] = tensor
        return [outputs[place] for place in sorted(outputs)]


def tensors_by_name(module: Any) -> dict[str, Any]:
    named = dict(module.named_parameters(remove_duplicate=False))
    named.update(module.named_buffers(remove_duplicate=False))
    return named


def outcome(run: Callable[..., Any], tensors: dict[str, Any], inputs: Sequence[Any], training: bool,
            autocast: Callable[[], Any] = contextlib.nullcontext) -> tuple[dict[str, Any], dict[str, Any]]:
    """Results and, of a training, gradients of a random loss, by name; the buffers that the pass left are results too."""
    import torch

    torch.manual_seed(0)
    if not training:
        with torch.no_grad(), autocast():
            return numbered([each.clone() for each in tensors_of(run(*[each.clone() for each in inputs]))]), {}
    kept: list[Any] = []

    def noted(*given: Any) -> Any:
        with autocast():
            results = tensors_of(run(*[each.detach() for each in given]))
        kept.extend(results)
        return results

    loss, _ = random_loss(noted, inputs)
    loss.backward()
    results = numbered([each.detach() for each in kept])
    results.update({name: tensor.clone() for name, tensor in sorted(tensors.items()) if not tensor.requires_grad})
    return results, {name: tensor.grad for name, tensor in tensors.items() if tensor.grad is not None}


def numbered(results: Sequence[Any]) -> dict[str, Any]:
    return {f"result {place}": each for place, each in enumerate(results)}


def perturb(tensors: Iterable[Any], seed: int, size: float) -> None:
    """Changes numbers by about this part; whole numbers stay."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in tensors:
            if each.is_floating_point():
                each.mul_((1 + size * torch.randn(each.shape, generator=generator)).to(each))


class Reference:
    """What the graph of a mode computes, and how much of that is rounding."""

    def __init__(self, module_of: Callable[[], Any], training: bool, inputs: Sequence[Any], precision: str,
                 autocast: Callable[[], Any]) -> None:
        step = STEPS[coarsest(module_of(), precision)]

        def run(seed: int, context: Callable[[], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
            module = module_of()
            tensors = tensors_by_name(module)
            given = [each.clone() for each in inputs]
            if seed > 0:
                perturb([*given, *tensors.values()], seed, step)
            return outcome(module, tensors, given, training, context)

        self.results, self.gradients = run(0, autocast)
        self.result_noise: dict[str, float] = {}
        self.gradient_noise: dict[str, float] = {}
        others = [(seed, autocast) for seed in (1, 2, 3)]
        if precision != "float32":
            others.append((0, contextlib.nullcontext))  # what the precision changes
        for seed, context in others:
            results, gradients = run(seed, context)
            for noise, differences in ((self.result_noise, differences_of(results, self.results)),
                                       (self.gradient_noise, differences_of(gradients, self.gradients, largest_counts=True))):
                for name, each in differences.items():
                    noise[name] = max(noise.get(name, 0.0), each if math.isfinite(each) else 0.0)


def differences_of(ours: dict[str, Any], theirs: dict[str, Any], largest_counts: bool = False) -> dict[str, float]:
    """Relative to the size of each, or, with `largest_counts`, to a thousandth of the largest where that is more."""
    sizes = {name: size_of(each) for name, each in theirs.items()}
    least = max(sizes.values(), default=0.0) * 1e-3 if largest_counts else 0.0
    return {name: difference(ours.get(name), theirs.get(name), max(sizes.get(name, 0.0), least, 1e-12))
            for name in sorted({*ours, *theirs})}


def wide(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return torch.view_as_real(tensor).double() if tensor.is_complex() else tensor.double()


def size_of(tensor: Any) -> float:
    """The root of the mean square; what is not finite does not count."""
    import torch

    numbers = torch.nan_to_num(wide(tensor), 0.0, 0.0, 0.0)
    return float(numbers.square().mean().sqrt()) if numbers.numel() else 0.0


def difference(ours: Any, theirs: Any, size: float) -> float:
    """Infinite for other shapes, and where one is finite and the other is not."""
    import torch

    some = ours if ours is not None else theirs
    numbers = [torch.zeros_like(wide(some)) if each is None else wide(each) for each in (ours, theirs)]
    if numbers[0].shape != numbers[1].shape or not torch.equal(*[torch.isfinite(each) for each in numbers]):
        return math.inf
    return size_of(torch.nan_to_num(numbers[0], 0.0, 0.0, 0.0) - torch.nan_to_num(numbers[1], 0.0, 0.0, 0.0)) / size


def differing(differences: dict[str, float], noise: dict[str, float], tolerance: float) -> dict[str, float]:
    """Those that are larger than rounding explains. Zeros, whose difference is 1, are not."""
    def allowed(name: str) -> float:
        own = noise.get(name, 0.0)
        return 100 * own if own >= IS_NOISE else min(tolerance + NOISE_FACTOR * own, 0.9)

    return {name: each for name, each in differences.items() if not each <= allowed(name)}


def coarsest(graph: Any, precision: str) -> str:
    """The precision with the largest steps among `precision` and those that the graph itself has, as under autocast."""
    import torch

    values = [value for module in graph.modules() if isinstance(module, torch.fx.GraphModule)
              for node in module.graph.nodes for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))]
    found = {str(value.dtype).removeprefix("torch.") for value in values if isinstance(value, torch.Tensor)}
    return max({precision, *found & {*STEPS}}, key=lambda name: STEPS[name])


def compare(passes_of: Callable[[dict[str, Any]], Any], fresh: Callable[[], Any], mode: str, inputs: Sequence[Any],
            precision: str, autocast: Callable[[], Any]) -> tuple[float, set[str]]:
    """As check_passes(), of one mode and batch; `passes_of` makes passes of the tensors of a fresh module."""
    most, most_gradient = TOLERANCES[precision]
    reference = Reference(fresh, mode == "training", inputs, precision, autocast)
    tensors = tensors_by_name(fresh())
    results, gradients = outcome(passes_of(tensors), tensors, inputs, mode == "training")
    differences = differences_of(results, reference.results)
    if wrong := differing(differences, reference.result_noise, most):
        raise CannotCompile(f"the compiled pass of the {mode} differs from the graph in {listed(list(wrong))} (by "
                            f"{max(wrong.values()):.2g} of their size)")
    if wrong := differing(differences_of(gradients, reference.gradients, largest_counts=True), reference.gradient_noise,
                          most_gradient):
        raise CannotCompile(f"the compiled backward pass has other gradients than the graph for {listed(list(wrong))} (by "
                            f"{max(wrong.values()):.2g} of their size)")
    rounding = {name for name, each in reference.result_noise.items() if each >= IS_NOISE}
    largest = max((each for name, each in differences.items() if name not in rounding), default=0.0)
    rounding |= {f"the gradient of {name}" for name, each in reference.gradient_noise.items() if each >= IS_NOISE}
    return largest, rounding


def check_passes(programs: dict[str, Any], document: dict[str, Any], paths: dict[str, str], inputs: Sequence[Any],
                 module_of: Callable[[Any], Any], autocast: Callable[[], Any]) -> tuple[float, list[str]]:
    """The largest relative difference of results, and the tensors that are rounding alone.

    Throws where a pass computes something else than the graph. `module_of` makes the module of a program, and `autocast` a
    context of the precision, which the passes have within them.
    """
    import torch

    largest = 0.0
    rounding: set[str] = set()
    for program, mode in (("model", "training"), ("eval", "evaluation")):
        for batch in (inputs, [torch.cat([each, each[:1]]) for each in inputs]):
            for attempt in range(ATTEMPTS):
                def fresh(program: str = program, attempt: int = attempt) -> Any:
                    module = module_of(copy.deepcopy(programs[program]))
                    perturb(tensors_by_name(module).values(), 10 + attempt, 0.01 if attempt > 0 else 0.0)
                    return module

                def passes_of(tensors: dict[str, Any], mode: str = mode) -> Passes:
                    return Passes(document["passes"][mode], paths, tensors, document["device"])

                try:
                    differs, alone = compare(passes_of, fresh, mode, batch, document["precision"], autocast)
                    break
                except CannotCompile:
                    if attempt == ATTEMPTS - 1:
                        raise
            largest = max(largest, differs)
            rounding |= alone
    return largest, sorted(rounding)
