"""Compares the gradients of a network of PyTorch with those of its graph of torch.export."""

from __future__ import annotations

import contextlib
import copy
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stepop.eval.export_check import CannotExport, listed, tensors_of

#: The largest difference to the module's gradients. A wrong derivative differs by more than a tenth.
GRADIENT_TOLERANCE = 1e-3


@contextlib.contextmanager
def restored(net: Any) -> Iterator[None]:
    """Undoes what happens to the module's tensors. It is the module itself, as a copy has no hooks of parameters."""
    import torch

    tensors = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, tensor in tensors.items():
                if tensor.shape == before[name].shape:
                    tensor.copy_(before[name])
        net.zero_grad(set_to_none=True)


@contextlib.contextmanager
def noted_hooks(places: list[str]) -> Iterator[None]:
    """Notes where tensor.register_hook is called."""
    import torch

    register = torch.Tensor.register_hook
    package = os.path.dirname(torch.__file__)

    def note(tensor: Any, hook: Any) -> Any:
        frames = [frame for frame in traceback.extract_stack()[:-1] if not frame.filename.startswith(package)]
        if frames:
            places.append(f"register_hook in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}")
        return register(tensor, hook)

    torch.Tensor.register_hook = note  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.Tensor.register_hook = register  # type: ignore[method-assign]


def random_loss(run: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A random weighting of the results, and the inputs that get gradients."""
    import torch

    leaves = [each.clone().requires_grad_(each.is_floating_point() or each.is_complex()) for each in inputs]
    torch.manual_seed(0)
    results = tensors_of(run(*[each.clone() for each in leaves]))  # copies, as code may write into its inputs
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=torch.float64)
    for result in results:
        if result.is_complex():
            result = torch.view_as_real(result)
        if result.is_floating_point():
            loss = loss + (result.double() * torch.randn(
                result.shape, generator=generator, dtype=torch.float64).to(result.device)).sum()
    return loss, leaves


def lost_parts(net: Any, loss: Any, hooks: Sequence[str]) -> tuple[list[str], bool]:
    """What acts on the gradients of a loss without being an operation, and whether it is checkpointing."""
    from torch.autograd.function import BackwardCFunction

    parts, checkpoints = [], False
    nodes, seen = [loss.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [each for each, _ in node.next_functions]
        if isinstance(node, BackwardCFunction):
            name = type(node)._forward_cls.__name__
            if "checkpoint" in name.lower():
                checkpoints = True
            elif name != "BackwardHookFunction":
                parts.append(f"the backward of the torch.autograd.Function {name}")
    for name, module in net.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            parts.append(f"a backward hook of {name or 'the module'} ({type(module).__name__})")
    for name, parameter in net.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            parts.append(f"a hook of the parameter {name}")
    parts += hooks
    return list(dict.fromkeys(parts)), checkpoints


def gradients_of(net: Any, graph: Any, inputs: Sequence[Any], names: Sequence[str]) -> tuple[dict[str, Any], list[str], bool]:
    """By name (of the module's gradients, of the graph's), what the graph may have lost, and whether it checkpoints."""
    import torch

    with torch.no_grad():
        generator = torch.Generator().manual_seed(2)
        own = dict(net.named_parameters(remove_duplicate=False))
        for parameter in net.parameters():
            # Zeros, as the last layer of a block begins with, would hide what is wrong before it.
            if parameter.is_floating_point() and not parameter.any():
                parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter) * 0.02)
        theirs = dict(graph.named_parameters(remove_duplicate=False))
        for name, parameter in theirs.items():
            if name in own:
                parameter.copy_(own[name])
    hooks: list[str] = []
    with noted_hooks(hooks):
        loss, leaves = random_loss(net, inputs)
    if not loss.requires_grad:
        return {}, [], False
    parts, checkpoints = lost_parts(net, loss, hooks)
    loss.backward()
    graph_loss, graph_leaves = random_loss(graph, inputs)
    if graph_loss.requires_grad:
        graph_loss.backward()
    tied: dict[int, list[Any]] = {}  # the graph's tensors of each of the module's, each once
    for name, parameter in own.items():
        if name in theirs and not any(each is theirs[name] for each in tied.setdefault(id(parameter), [])):
            tied[id(parameter)].append(theirs[name])
    pairs = {}
    for name, parameter in net.named_parameters():
        found = [each.grad for each in tied.get(id(parameter), []) if each.grad is not None]
        pairs[name] = (parameter.grad, sum(found) if found else None)
    for name, leaf, graph_leaf in zip(names, leaves, graph_leaves):
        pairs[f"the input {name}"] = (leaf.grad, graph_leaf.grad)
    return pairs, parts, checkpoints


def check_gradients(net: Any, program: Any, inputs: Sequence[Any], names: Sequence[str]) -> str:
    """Compares the gradients of a random loss in training; a note for the user where they agree for this loss."""
    import torch

    graph = copy.deepcopy(program).module()
    net.train()
    with restored(net), torch.enable_grad():
        try:
            pairs, parts, checkpoints = gradients_of(net, graph, inputs, names)
        except CannotExport:
            raise
        except Exception as error:
            return f"gradients were not compared: {str(error).strip().splitlines()[0]}"
        differences = relative_differences(pairs)
    wrong = {name: each for name, each in differences.items() if not each <= GRADIENT_TOLERANCE}
    if not wrong:
        return (f"{listed(parts)} is not part of the graph; for a random loss the gradients are the same"
                if parts else "")
    what = (f"in training the graph has other gradients than the module for {listed(list(wrong))} (by "
            f"{max(wrong.values()):.2g} of their size): ")
    if checkpoints:
        raise CannotExport(
            what + "checkpointing with use_reentrant=True leaves no gradients in a graph: use_reentrant=False, or no "
            "checkpointing in the module and checkpoint_modules in the config")
    if parts:
        raise CannotExport(
            what + f"torch.export records forward alone, without {listed(parts)}. Write it with operations that have the "
            "derivative: x + (f(x) - x).detach() has the value f(x) and the gradient of x, 2 * x.detach() - x the value x "
            "and the gradient reversed")
    raise CannotExport(what + "torch.export did not record what computes them")


def relative_differences(pairs: dict[str, Any]) -> dict[str, float]:
    """By name; a gradient that is only rounding beside the others counts little."""
    import torch

    def wide(gradient: Any, like: Any) -> Any:
        if gradient is None:
            gradient = torch.zeros_like(like)
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        return torch.nan_to_num((torch.view_as_real(gradient) if gradient.is_complex() else gradient).double())

    differences = {}
    sizes = [wide(theirs, theirs).abs().max().item() for theirs, _ in pairs.values() if theirs is not None and theirs.numel()]
    least = max(max(sizes, default=0.0) * 1e-3, 1e-30)
    for name, (theirs, ours) in pairs.items():
        some = theirs if theirs is not None else ours
        if some is None or some.numel() == 0:
            continue
        expected = wide(theirs, some)
        size = max(expected.abs().max().item(), least)
        differences[name] = (wide(ours, some) - expected).abs().max().item() / size
    return differences
