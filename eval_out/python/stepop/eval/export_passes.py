"""Passes of a network as graphs of AOTAutograd: what they take and return, and how a joint graph is divided into two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepop.eval.export_check import CannotCompile


def order_of(tensor: Any) -> list[int]:
    """The dimensions from the one of the largest stride to that of the smallest, of a tensor that is dense in them."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    strides = tensor.stride()
    order = list(range(tensor.dim()))
    for i in range(len(order)):  # few, and sizes are symbols, which have no order for sorted()
        for j in range(len(order) - 1 - i):
            if guard_or_false(strides[order[j]] < strides[order[j + 1]]):
                order[j], order[j + 1] = order[j + 1], order[j]
    return order


def is_dense(tensor: Any) -> bool:
    size = 1
    for place in reversed(order_of(tensor)):
        if tensor.shape[place] != 1 and tensor.stride()[place] != size:
            return False
        size *= tensor.shape[place]
    return True


def place_of_input(descriptor: Any) -> dict[str, Any]:
    """A tensor of the network by its name, or an input by its place."""
    from torch._functorch._aot_autograd import descriptors

    if isinstance(descriptor, (descriptors.ParamAOTInput, descriptors.BufferAOTInput)):
        return {"tensor": descriptor.target}
    if isinstance(descriptor, descriptors.PlainAOTInput):
        return {"input": descriptor.idx}
    raise CannotCompile(f"an input of the kind {type(descriptor).__name__} cannot be compiled")


def source_of(node: Any) -> dict[str, Any]:
    """What a pass takes there, in which type and order of its dimensions in memory."""
    from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE

    value = node.meta["val"]
    place = place_of_input(node.meta["desc"])
    if "tensor" in place and not is_dense(value):
        raise CannotCompile(f"{place['tensor']} is a part of another tensor in memory: .contiguous() makes it one of its own")
    return {**place, "type": int(_TORCH_TO_SERIALIZE_DTYPE[value.dtype]),
            "order": order_of(value)}


def result_of(descriptor: Any) -> dict[str, Any]:
    """What a pass returns there: a result of the network by its place, or the new value of one of its tensors."""
    from torch._functorch._aot_autograd import descriptors

    if isinstance(descriptor, descriptors.PlainAOTOutput):
        return {"output": descriptor.idx}
    if isinstance(descriptor, descriptors.InputMutationAOTOutput):
        place = place_of_input(descriptor.mutated_input)
        if "input" in place:
            raise CannotCompile("forward changes its input in place, which compiled passes do not: x = x * 2, not x.mul_(2)")
        return place
    raise CannotCompile(f"a result of the kind {type(descriptor).__name__} cannot be compiled")


def placeholders(graph_module: Any) -> list[Any]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def results(graph_module: Any) -> tuple[list[Any], list[Any]]:
    """The nodes that a graph returns, and their descriptors."""
    output = graph_module.graph.output_node()
    return list(output.args[0]), list(output.meta.get("desc", []))


def compute_sizes(backward: Any, shapes: Sequence[tuple[str, Any]]) -> None:
    """Replaces sizes that a backward pass takes as numbers by sizes of inputs of the network, which it then takes.

    `shapes` are the names of these inputs with their values.
    """
    import torch
    from torch.fx import Proxy
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    graph = backward.graph
    nodes = placeholders(backward)
    numbers = [node for node in nodes if isinstance(node.meta["val"], torch.SymInt)]
    known = {str(size.node.expr) for node in nodes if isinstance(node.meta["val"], torch.Tensor)
             for size in node.meta["val"].shape if isinstance(size, torch.SymInt) and size.node.expr.is_symbol}
    needed = {str(symbol) for node in nodes if isinstance(node.meta["val"], torch.SymInt)
              for symbol in node.meta["val"].node.expr.free_symbols}
    needed |= {str(symbol) for node in nodes if isinstance(node.meta["val"], torch.Tensor)
               for size in node.meta["val"].shape if isinstance(size, torch.SymInt)
               for symbol in size.node.expr.free_symbols} - known
    proxies: dict[Any, Any] = {}
    body = next(node for node in graph.nodes if node.op != "placeholder")
    for name, value in shapes:
        if not needed & {str(size) for size in value.shape}:
            continue
        own = next((node for node in nodes if node.name == name), None)
        if own is None:
            with graph.inserting_before(nodes[0]):
                own = graph.placeholder(name)
                own.meta["val"] = value
        for place, size in enumerate(value.shape):
            if str(size) in needed:
                needed.remove(str(size))
                with graph.inserting_before(body):
                    node = graph.call_function(torch.ops.aten.sym_size.int, (own, place))
                    node.meta["val"] = size
                proxies[size.node.expr] = Proxy(node)
    if needed:
        raise CannotCompile(f"sizes that are computed from inputs ({', '.join(sorted(needed))}) cannot be given to the "
                            "backward pass")
    for node in numbers:
        with graph.inserting_before(body):
            made = sympy_interp(PythonReferenceAnalysis, proxies, node.meta["val"].node.expr)
        value = made.node if isinstance(made, Proxy) else int(made)
        if isinstance(made, Proxy):
            made.node.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(value)
        graph.erase_node(node)
    graph.lint()
    backward.recompile()


def take_saved(forward: Any, backward: Any, count: int) -> list[dict[str, Any]]:
    """What the backward pass keeps of the forward one: its inputs, by place, or its results, which are the first `count`
    and those that are appended here. A tensor that is kept is returned once, and an input not at all."""
    nodes, _ = results(forward)
    kept = nodes[:count]
    inputs = {node.name: place for place, node in enumerate(placeholders(forward))}
    by_name = {node.name: node for node in nodes}
    saved: list[dict[str, Any]] = []
    for node in placeholders(backward):
        if node.name in inputs:
            saved.append({"input": inputs[node.name]})
        elif node.name in by_name:
            own = by_name[node.name]
            if own not in kept:
                kept.append(own)
            saved.append({"result": kept.index(own)})
    output = forward.graph.output_node()
    output.args = (tuple(kept),)
    output.meta.pop("desc", None)
    forward.graph.eliminate_dead_code()
    forward.recompile()
    return saved


def divide(joint: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The forward and the backward pass of a joint graph, and what passes.json says of both."""
    import torch
    from torch._functorch._aot_autograd import descriptors
    from torch._inductor.compile_fx import partition_fn

    is_tangent = {node: isinstance(node.meta["desc"], descriptors.TangentAOTInput) for node in placeholders(joint)}
    primals = [node for node in placeholders(joint) if not is_tangent[node]]
    tangents = {node.name: {**result_of(node.meta["desc"].output), "order": order_of(node.meta["val"])}
                for node in placeholders(joint) if is_tangent[node]}
    if not tangents:
        raise CannotCompile("no parameter gets a gradient: there is nothing to train")
    nodes, described = results(joint)
    # Results come first, then gradients, which are None for what has none.
    count = next((place for place, each in enumerate(described)
                  if each is None or isinstance(each, descriptors.GradAOTOutput)), len(described))
    returned = [result_of(desc) for desc in described[:count]]
    gradients = [None if desc is None else place_of_input(desc.grad_of) for desc in described[count:]]
    if len({node.name for node in nodes[:count]}) != count:
        raise CannotCompile("forward returns one tensor twice: return a .clone() of it")
    sources = [source_of(node) for node in primals]
    forward, backward = partition_fn(
        joint, tuple([node.meta["val"] for node in placeholders(joint) if is_tangent[node] == which]
                     for which in (False, True)),
        num_fwd_outputs=count,
        static_lifetime_input_indices=[place for place, source in enumerate(sources) if "tensor" in source])
    compute_sizes(backward, [(node.name, node.meta["val"]) for node, source in zip(primals, sources) if "input" in source])
    taken = [node.name for node in placeholders(backward)]
    last = [name for name in taken if name in tangents]
    saved = take_saved(forward, backward, count)
    if taken[len(saved):] != last:
        raise CannotCompile("the backward pass takes other tensors than the forward pass keeps")
    return forward, backward, {"inputs": sources, "results": returned, "saved": saved,
                               "tangents": [tangents[name] for name in last],
                               "gradients": drop_missing_gradients(backward, gradients, last)}


def tangents_behind(node: Any, tangents: Sequence[str]) -> list[int]:
    """The places of the gradients of results from which a backward pass computes a node."""
    seen, nodes = {node}, [node]
    while nodes:
        for each in nodes.pop().all_input_nodes:
            if each not in seen:
                seen.add(each)
                nodes.append(each)
    names = {each.name for each in seen}
    return [place for place, name in enumerate(tangents) if name in names]


def drop_missing_gradients(backward: Any, gradients: Sequence[Any], tangents: Sequence[str]) -> list[Any]:
    """Leaves None out of what a backward pass returns; what passes.json says of the gradients that are left."""
    output = backward.graph.output_node()
    kept = [(node, gradient) for node, gradient in zip(output.args[0], gradients)
            if node is not None and gradient is not None]
    output.args = (tuple(node for node, _ in kept),)
    output.meta.pop("desc", None)
    backward.graph.eliminate_dead_code()
    backward.recompile()
    return [{**gradient, "tangents": tangents_behind(node, tangents)} for node, gradient in kept]
