"""Compares compiled passes of a network with its graph: results, gradients, and buffers, in the process that compiled."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stepop.eval.export_check import CannotCompile, listed, tensors_of
from stepop.eval.export_gradients import random_loss, relative_differences

#: The largest differences to the graph, of results and of gradients, relative to their size. The sums are the same, in
#: another order; in bfloat16 a pass that keeps more digits between operations differs by a few of its steps of 2^-8.
TOLERANCES = {"float32": (1e-4, 1e-3), "bfloat16": (5e-2, 2e-1), "float16": (1e-2, 1e-1)}
#: A step of each precision. What moves by more than the tolerance when parameters and inputs do by such steps is rounding
#: alone, as are gradients before a batch normalization of two different examples, and is allowed that difference.
STEPS = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-10}


def allowed(tolerance: float, move: float) -> float:
    """The difference that a tensor may have which moves so far, relative to its size."""
    # What moves by half is rounding alone, such as the mean of what was normalized, and has no more than its magnitude.
    return tolerance + move * (4 if move < 0.5 else 1000)


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


def changing(tensors: dict[str, Any]) -> list[str]:
    """What a pass may have written."""
    return sorted(name for name, tensor in tensors.items() if not tensor.requires_grad)


def outcome(run: Callable[..., Any], tensors: dict[str, Any], inputs: Sequence[Any], training: bool,
            autocast: Callable[[], Any]) -> tuple[list[Any], dict[str, Any]]:
    """Results and, of a training, gradients of a random loss; with the buffers that the pass left."""
    import torch

    torch.manual_seed(0)
    if not training:
        with torch.no_grad(), autocast():
            return [each.clone() for each in tensors_of(run(*[each.clone() for each in inputs]))], {}
    kept: list[Any] = []

    def noted(*given: Any) -> Any:
        with autocast():
            results = tensors_of(run(*[each.detach() for each in given]))
        kept.extend(results)
        return results

    loss, _ = random_loss(noted, inputs)
    loss.backward()
    gradients = {name: tensor.grad for name, tensor in tensors.items() if tensor.grad is not None}
    return [each.detach() for each in kept] + [tensors[name].clone() for name in changing(tensors)], gradients


def moved(tensors: Iterable[Any], step: float, seed: int) -> list[Any]:
    """Copies whose numbers differ by about one step; whole numbers stay."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return [each.detach() * (1 + step * torch.randn(each.shape, generator=generator).to(each.device)).to(each.dtype)
            if each.is_floating_point() else each.detach().clone() for each in tensors]


class Graph:
    """What the graph of a mode computes, and how far rounding alone moves it."""

    def __init__(self, module_of: Callable[[], Any], training: bool, inputs: Sequence[Any], step: float,
                 autocast: Callable[[], Any]) -> None:
        import torch

        outcomes = []
        for seed in range(4):
            module = module_of()
            tensors = tensors_by_name(module)
            given = list(inputs)
            if seed > 0:
                given = moved(given, step, seed)
                with torch.no_grad():
                    for tensor, other in zip(list(tensors.values()), moved(tensors.values(), step, seed)):
                        tensor.copy_(other)
            outcomes.append(outcome(module, tensors, given, training, autocast))
        (self.results, self.gradients), *others = outcomes
        buffers = changing(tensors) if training else []
        self.names = [f"result {place}" for place in range(len(self.results) - len(buffers))] + buffers
        self.results_move = [max(finite(relative(other[place], each)) for other, _ in others)
                             for place, each in enumerate(self.results)]
        self.gradients_move: dict[str, float] = {}
        for _, other in others:
            for name, move in differences_of(other, self.gradients).items():
                self.gradients_move[name] = max(finite(move), self.gradients_move.get(name, 0.0))


def finite(move: float) -> float:
    return move if math.isfinite(move) else 0.0


def differences_of(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    return relative_differences({name: (theirs.get(name), ours.get(name)) for name in {*theirs, *ours}})


def check_passes(programs: dict[str, Any], document: dict[str, Any], paths: dict[str, str], inputs: Sequence[Any],
                 module_of: Callable[[Any], Any], autocast: Callable[[], Any]) -> float:
    """The largest relative difference of results. Throws where a pass computes something else than the graph.

    `module_of` makes the module of a program, and `autocast` a context of the precision.
    """
    import torch

    most, most_gradient = TOLERANCES[document["precision"]]
    step = STEPS[document["precision"]]
    largest = 0.0
    for name, mode in (("model", "training"), ("eval", "evaluation")):
        def fresh(name: str = name) -> Any:
            return module_of(copy.deepcopy(programs[name]))

        for batch in (inputs, [torch.cat([each, each[:1]]) for each in inputs]):
            graph = Graph(fresh, mode == "training", batch, step, autocast)
            tensors = tensors_by_name(fresh())
            ours, our_gradients = outcome(Passes(document["passes"][mode], paths, tensors, document["device"]), tensors,
                                          batch, mode == "training", autocast)
            if len(ours) != len(graph.results):
                raise CannotCompile(f"the compiled pass of the {mode} has {len(ours)} results, and the graph {len(graph.results)}")
            differences = [relative(each, other) for each, other in zip(ours, graph.results)]
            largest = max([largest, *(each for each, move in zip(differences, graph.results_move) if move <= most)])
            wrong = {name: difference for name, difference, move in zip(graph.names, differences, graph.results_move)
                     if not difference <= allowed(most, move)}
            if wrong:
                raise CannotCompile(f"the compiled pass of the {mode} differs from the graph in {listed(list(wrong))} (by "
                                    f"{max(wrong.values()):.2g} of their size)")
            by_name = differences_of(our_gradients, graph.gradients)
            wrong = {name: difference for name, difference in sorted(by_name.items())
                     if not difference <= allowed(most_gradient, graph.gradients_move.get(name, 0.0))}
            if wrong:
                raise CannotCompile(f"the compiled backward pass has other gradients than the graph for {listed(list(wrong))} "
                                    f"(by {max(wrong.values()):.2g} of their size)")
    return largest


def relative(ours: Any, theirs: Any) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    if ours.numel() == 0:
        return 0.0
    import torch

    wide = torch.complex128 if theirs.is_complex() else torch.float64
    scale = max(theirs.to(wide).abs().max().item(), 1e-12)
    return float((ours.to(wide) - theirs.to(wide)).abs().max().item() / scale)
