"""Compares a network of PyTorch with its graphs of torch.export: results, and state that forward changes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

#: The largest difference of results to the module in Python, relative to the size of its outputs.
TOLERANCE = 1e-5


class CannotExport(Exception):
    """What was given cannot be exported; the text says why and what would help."""


class CannotCompile(CannotExport):
    """The graphs are sound, and native code that computes the same cannot be made of them."""


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c, d and 3 more`"""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def mode_of(training: bool) -> str:
    return "training" if training else "evaluation"


def tensors_of(result: Any) -> list[Any]:
    import torch

    return [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def graph_results(graph: Any, inputs: Sequence[Any], training: bool) -> list[Any]:
    """What the graph gives for inputs that the module takes."""
    try:
        return tensors_of(graph(*inputs))
    except Exception as error:
        said = str(error).strip().split("\n")[0]
        advice = ""
        if ".size()[0]" in said:
            advice = ("; len(x), int(x.shape[0]) and NumPy make the batch's size a number of the graph: "
                      "x.shape[0], x.new_zeros(x.shape[0], 1) keep it free")
        shapes = ", ".join(str(list(each.shape)) for each in inputs)
        raise CannotExport(f"the graph of the {mode_of(training)} does not take {shapes}, which the module takes: "
                           f"{said}{advice}") from error


def compare(net: Any, program: Any, inputs: Sequence[Any], training: bool) -> float:
    """The largest relative difference between the graph and the module, with the same random numbers."""
    import torch

    graph = copy.deepcopy(program).module()
    with torch.no_grad():
        torch.manual_seed(0)
        expected = tensors_of(copy.deepcopy(net).train(training)(*[each.clone() for each in inputs]))
        torch.manual_seed(0)
        results = graph_results(graph, [each.clone() for each in inputs], training)
    largest = 0.0
    for ours, theirs in zip(results, expected):
        if ours.shape != theirs.shape:
            raise CannotExport(f"the graph gives {list(ours.shape)} where the module gives {list(theirs.shape)}")
        if theirs.numel() == 0:
            continue
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        scale = max(theirs.to(wide).abs().max().item(), 1e-12)
        largest = max(largest, (ours.to(wide) - theirs.to(wide)).abs().max().item() / scale)
    return largest


def check(net: Any, programs: dict[str, Any], inputs: Sequence[Any]) -> float:
    """Compares with the examples, and with a batch of another size."""
    import torch

    others = [torch.cat([tensor, tensor[:1]]) for tensor in inputs]
    largest = 0.0
    for batch in (inputs, others):
        for name, training in (("model", True), ("eval", False)):
            difference = compare(net, programs[name], batch, training)
            if not difference <= TOLERANCE:
                raise CannotExport(
                    f"the graph differs from the module by {difference:.2g} in {mode_of(training)}: does it draw random "
                    "numbers by other means than torch there, or depend on values of its inputs?")
            largest = max(largest, difference)
    return largest


def check_one_example(net: Any, programs: dict[str, Any], inputs: Sequence[Any]) -> str:
    """A note where a batch of one example, for which torch.export does not look, is computed otherwise."""
    one = [tensor[:1] for tensor in inputs]
    for name, training in (("model", True), ("eval", False)):
        try:
            difference = compare(net, programs[name], one, training)
        except CannotExport as error:
            return f"a batch of one example is not taken: {error}: choose a batch size that leaves none"
        except Exception:  # the module takes none, such as batch normalization in training
            continue
        if not difference <= TOLERANCE:
            return (f"a batch of one example is computed otherwise than by the module, in {mode_of(training)} by "
                    f"{difference:.2g}: choose a batch size that leaves none, or drop_last: true")
    return ""


def check_structure(net: Any, inputs: Sequence[Any]) -> None:
    """Refuses results that the file cannot hold, and others in training than in evaluation."""
    import torch

    counts = {}
    for training in (True, False):
        with torch.no_grad():
            result = copy.deepcopy(net).train(training)(*[each.clone() for each in inputs])
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            raise CannotExport(f"forward returns a {type(result).__name__} in {mode_of(training)}, a namedtuple, which the "
                               "file cannot hold: return a plain tuple of its tensors")
        counts[training] = len(tensors_of(result))
    if counts[True] != counts[False]:
        raise CannotExport(f"forward returns {counts[True]} tensors in training and {counts[False]} in evaluation: return "
                           "the same ones in both, also those of an auxiliary head")


def refuse_complex(net: Any) -> None:
    """Complex numbers are neither trained here nor held by the files of checkpoints."""
    persistent = net.state_dict(keep_vars=True)
    names = [name for name, tensor in persistent.items() if getattr(tensor, "is_complex", lambda: False)()]
    if names:
        raise CannotExport(
            f"{listed(names)}: complex numbers cannot be trained or saved: keep nn.Parameter(torch.view_as_real(x)), or "
            "such a buffer, and compute with torch.view_as_complex(...); a constant can be register_buffer(..., "
            "persistent=False)")


def numbers_of(net: Any) -> dict[str, Any]:
    """Numbers that are plain attributes of modules, by their places."""
    found = {}
    for path, module in net.named_modules():
        for key, value in vars(module).items():
            if isinstance(value, (int, float)) and key != "training":
                found[f"{path}.{key}".lstrip(".")] = value
    return found


def changed_by_forward(net: Any, inputs: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Buffers that are not persistent, and numbers of Python, that a forward changes in either mode."""
    import torch

    buffers, numbers = set(), set()
    for training in (True, False):
        module = copy.deepcopy(net).train(training)
        saved = module.state_dict(keep_vars=True)
        passing = {name: buffer.clone() for name, buffer in module.named_buffers() if name not in saved}
        before = numbers_of(module)
        with torch.no_grad():
            module(*[each.clone() for each in inputs])
        after = dict(module.named_buffers())
        for name, buffer in passing.items():
            now = after.get(name)
            # A cache that grows, or goes with its module, is computed anew.
            if now is not None and now.shape == buffer.shape and not torch.equal(now, buffer):
                buffers.add(name)
        after_numbers = numbers_of(module)  # modules may have come and gone
        numbers |= {place for place, value in before.items() if after_numbers.get(place, value) != value}
    return sorted(buffers), sorted(numbers)


def keep_changed_state(net: Any, inputs: Sequence[Any]) -> list[str]:
    """Makes buffers that forward changes persistent, so that a checkpoint has them; notes for the user."""
    buffers, numbers = changed_by_forward(net, inputs)
    for name in buffers:
        path, _, key = name.rpartition(".")
        net.get_submodule(path)._non_persistent_buffers_set.discard(key)
    notes = []
    if buffers:
        notes.append(f"forward changes {listed(buffers)}, not persistent in Python: here checkpoints hold it, so a resume "
                     "has its value, and load_state_dict needs strict=False")
    if numbers:
        notes.append(f"forward changes {listed(numbers)}, a number of Python's: the graph keeps the value of the export; "
                     "register_buffer makes it part of the state")
    return notes
