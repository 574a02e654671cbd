"""Compares compiled passes of a network with its graph: results, gradients, and buffers, in the process that compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from stepop.eval.export_check import CannotCompile, listed, tensors_of
from stepop.eval.export_gradients import random_loss, relative_differences

#: The largest differences to the graph, of results and of gradients, relative to their size. The sums are the same, in
#: another order; in bfloat16 a pass that keeps more digits between operations differs by a few of its steps of 2^-8.
TOLERANCES = {"float32": (1e-4, 1e-3), "bfloat16": (5e-2, 2e-1), "float16": (1e-2, 1e-1)}


def in_order(tensor: Any, order: Sequence[int]) -> Any:
    """The tensor with its dimensions in this order in memory."""
    back = [list(order).index(place) for place in range(len(order))]
    return tensor.permute(*order).contiguous().permute(*back) if order else tensor


def load(paths: dict[str, str], described: Sequence[dict[str, Any]]) -> Any:
    import torch

    return torch._C._aoti.AOTIModelContainerRunnerCpu(paths[described[0]["path"]], 1)


class Passes:
    """The passes of one mode, as stepop runs them."""

    def __init__(self, described: dict[str, Any], paths: dict[str, str], tensors: dict[str, Any]) -> None:
        self.described = described
        self.tensors = tensors
        self.forward = load(paths, described["forward"])
        self.backward = load(paths, described["backward"]) if "backward" in described else None

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
            autocast: Callable[[], Any]) -> tuple[list[Any], dict[str, Any]]:
    """Results and, of a training, gradients of a random loss; with the buffers that the pass left."""
    import torch

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
    buffers = [tensor for name, tensor in sorted(tensors.items()) if not tensor.requires_grad]
    return [each.detach() for each in kept] + [each.clone() for each in buffers], gradients


def check_passes(programs: dict[str, Any], document: dict[str, Any], paths: dict[str, str], inputs: Sequence[Any],
                 module_of: Callable[[Any], Any], autocast: Callable[[], Any]) -> float:
    """The largest relative difference of results. Throws where a pass computes something else than the graph.

    `module_of` makes the module of a program, and `autocast` a context of the precision.
    """
    import torch

    most, most_gradient = TOLERANCES[document["precision"]]
    largest = 0.0
    for name, mode in (("model", "training"), ("eval", "evaluation")):
        for batch in (inputs, [torch.cat([each, each[:1]]) for each in inputs]):
            found = []
            for compiled in (False, True):
                module = module_of(copy.deepcopy(programs[name]))
                tensors = tensors_by_name(module)
                run = Passes(document["passes"][mode], paths, tensors) if compiled else module
                torch.manual_seed(0)
                found.append(outcome(run, tensors, batch, mode == "training", autocast))
            (theirs, their_gradients), (ours, our_gradients) = found
            differences = [relative(each, other) for each, other in zip(ours, theirs)]
            largest = max([largest, *differences])
            names = set(their_gradients) | set(our_gradients)
            by_name = relative_differences({each: (their_gradients.get(each), our_gradients.get(each)) for each in names})
            wrong = [each for each, difference in sorted(by_name.items()) if not difference <= most_gradient]
            if any(not each <= most for each in differences) or len(ours) != len(theirs):
                raise CannotCompile(f"the compiled pass of the {mode} differs from the graph by "
                                    f"{max(differences, default=0.0):.2g}")
            if wrong:
                raise CannotCompile(f"the compiled backward pass has other gradients than the graph for {listed(wrong)} (by "
                                   f"{max(by_name.values()):.2g} of their size)")
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
