"""Exports a network of PyTorch for stepop, by torch.export.

    python -m stepop.eval.export my_net.py:Net --example image=4,3,224,224 -o net.pt2

`model: {class: Exported, path: net.pt2}` trains it. The file has the graph of the training and that
of the evaluation, so that dropout and batch normalization do in each what they do in Python. Sizes
of the batch are free, and heights and widths where the network allows it. PyTorch reads it too, by
torch.export.load. With `--compile` it also has the passes as native code, which `compiled: true` runs; a file that was
exported before takes them too:

    python -m stepop.eval.export net.pt2 --compile -o net.pt2
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import io
import json
import logging
import os
import re
import shutil
import signal
import sys
import traceback
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from stepop.eval.export_check import (
    CannotCompile, CannotExport, check, check_one_example, check_structure, keep_changed_state, refuse_complex)
from stepop.eval.export_compile import add_passes, compile_file
from stepop.eval.export_gradients import check_gradients
from stepop.eval.export_source import example, line_of, make, text_of
from stepop.eval.export_target import Target

#: Which sizes are tried to be free: of the batch alone; all behind the channels; a sequence's too.
BATCH, SIZES, SEQUENCES = range(3)


#: For each input the sizes that `--free` chooses, if it does.
Chosen = Sequence["set[int] | None"]


def free_sizes(net: Any, inputs: Sequence[Any], which: int, chosen: Chosen) -> tuple[Any, ...]:
    """The sizes that may differ, in the structure of forward's arguments."""
    import torch

    auto = torch.export.Dim.AUTO
    shapes: list[Any] = []
    for tensor, own in zip(inputs, chosen):
        free = {0: auto} if tensor.dim() > 0 else {}
        has_channels = tensor.dim() > 3 or (tensor.dim() == 3 and which == SIZES)
        if own is not None:
            free.update({i: auto for i in own})
        elif which != BATCH:
            free.update({i: auto for i in range(2 if has_channels else 1, tensor.dim())})
        shapes.append(free)
    parameters = inspect.signature(net.forward).parameters.values()
    named = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if len(shapes) > named:  # the rest are those of *args
        return (*shapes[:named], tuple(shapes[named:]))
    return tuple(shapes)


def chosen_sizes(texts: Sequence[str], named: Sequence[tuple[str, Any]]) -> list["set[int] | None"]:
    """`--free image=0,2,3`: the places of the sizes by input, from 0, the batch."""
    chosen: dict[str, set[int]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        dims = dict((each, tensor.dim()) for each, tensor in named).get(name)
        places = [place for place in rest.split(",") if place.isdigit()]
        if dims is None or not equals or len(places) != len(rest.split(",")) or max(map(int, places)) >= dims:
            inputs = ", ".join(f"{each} of {tensor.dim()} sizes, 0 to {tensor.dim() - 1}" for each, tensor in named)
            raise CannotExport(f"--free {text}: expected an input and places of its sizes, image=0,2,3; there are {inputs}")
        chosen[name] = set(map(int, places))
    return [chosen.get(name) for name, _ in named]


def refuse_fixed(program: Any, named: Sequence[tuple[str, Any]], chosen: Chosen) -> None:
    """Throws where the network fixes a size that was to be free."""
    for shape, (name, tensor), own in zip(input_shapes(program), named, chosen):
        fixed = [place for place in sorted(own or ()) if str(shape[place]).isdigit()]
        if fixed:
            raise CannotExport(f"--free {name}={','.join(map(str, fixed))}: forward holds for {tensor.shape[fixed[0]]} there "
                               "alone: a size that becomes a number of Python (len, int, NumPy), or a layer of one size")


def export_mode(net: Any, inputs: Sequence[Any], training: bool, which: int, chosen: Chosen) -> Any:
    import torch

    net = copy.deepcopy(net).train(training)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # graphs, for PyTorch's developers
        warnings.simplefilter("ignore")
        return torch.export.export(net, tuple(inputs), strict=False,
                                   dynamic_shapes=free_sizes(net, inputs, which, chosen))


class TooLong(BaseException):
    """Beside torch.export's own handlers, which catch every Exception."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what takes longer, with TooLong."""

    def end(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def export_both(net: Any, inputs: Sequence[Any], seconds: float = 60,
                chosen: Chosen = ()) -> tuple[dict[str, Any], str]:
    """The graphs of both modes, and why other sizes than the batch's are fixed; empty where they are free.

    Some networks need one size, and some take PyTorch longer than `seconds` to follow in all sizes.
    """
    own = list(chosen) or [None] * len(inputs)

    def both(which: int) -> dict[str, Any]:
        return {name: export_mode(net, inputs, training, which, own)
                for name, training in (("model", True), ("eval", False))}

    try:
        with at_most(seconds):
            if any(each.dim() == 3 for each in inputs):
                with contextlib.suppress(Exception):
                    return both(SEQUENCES), ""
            return both(SIZES), ""
    except Exception:
        reason = "the network needs them"
    except TooLong:
        reason = f"to follow them took PyTorch more than {seconds:.0f} s"
    return both(BATCH), reason


def try_out(net: Any, named: Sequence[tuple[str, Any]], source: str) -> None:
    """Runs the module once in Python, with the examples and with a batch of another size."""
    import torch

    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in named)
    parameters = inspect.signature(net.forward).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty and each.kind in (
        each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    most = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if len(named) < len(needed) or (len(named) > most and not any(each.kind is each.VAR_POSITIONAL for each in parameters)):
        raise CannotExport(f"forward takes {', '.join(needed) or 'nothing'}, and --example gives {shapes}: one for each, "
                           "in this order")
    for more in (0, 1):
        inputs = [torch.cat([tensor, tensor[:more]]) for _, tensor in named]
        try:
            with torch.no_grad():
                result = copy.deepcopy(net).eval()(*inputs)
        except Exception as error:
            if more:
                raise CannotExport(f"the network takes batches of {named[0][1].shape[0]}, and not of "
                                   f"{inputs[0].shape[0]}: {text_of(error)}{line_of(error, source)}") from error
            raise CannotExport(f"the network cannot be called with --example {shapes}: {text_of(error)}"
                               f"{line_of(error, source)}") from error
        strange = {type(each).__name__ for each in torch.utils._pytree.tree_leaves(result)
                   if not isinstance(each, torch.Tensor) and each is not None}
        if strange:
            raise CannotExport(f"forward returns {', '.join(sorted(strange))} besides tensors: return tensors alone")


def reason_of(error: Exception) -> str:
    """What torch.export says, and where, without its advice for those who debug it."""
    import torch

    text = str(error).strip()
    first = text.split("\n\n")[0].strip()
    others = (os.path.dirname(torch.__file__), os.path.dirname(__file__), "<")  # "<string>" too
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(others)]
    where = f" in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
    advice = ("; forward decides by the values of a tensor, which no graph can: torch.cond, or torch.where"
              if "data-dependent" in text else "")
    return first + where + advice


def input_shapes(program: Any) -> list[Any]:
    return [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder" and node.name in
            program.graph_signature.user_inputs]


def free_text(program: Any, names: Sequence[str]) -> str:
    """`image [*, 3, *, *]`, as the graph takes its inputs."""
    texts = []
    for name, shape in zip(names, input_shapes(program)):
        sizes = [str(size) if str(size).isdigit() else "*" for size in shape]
        texts.append(f"{name} [{', '.join(sizes)}]")
    return ", ".join(texts)


def in_plain_words(limit: str, shapes: dict[str, list[int]]) -> list[str]:
    """`x.size()[3] <= 32` for `1 + (x.size()[3] - 1) // 32 == 1`, by trying sizes from 1 to eight times that of the
    example while the others stay. Nothing for what holds from half the example's size on; the limit as it is where it
    holds here and there, as for multiples, is about several sizes, or is not understood."""
    place = r"(\w+)\.size\(\)\[(\d+)\]"
    places = sorted(set(re.findall(place, limit)))
    texts = []
    try:
        code = compile(re.sub(place, r"shapes['\1'][\2]", limit), "limit", "eval")
        for name, index in places:
            own = shapes[name][int(index)]
            held = []
            for size in range(1, 8 * own + 1):
                changed = [size if i == int(index) else each for i, each in enumerate(shapes[name])]
                if eval(code, {"__builtins__": {"max": max, "min": min}, "shapes": {**shapes, name: changed}}):
                    held.append(size)
            if own not in held or held[-1] - held[0] + 1 != len(held):
                return [limit]
            if held[0] > max(own // 2, 1):
                texts.append(f"{name}.size()[{index}] >= {held[0]}")
            if held[-1] < 8 * own:
                texts.append(f"{name}.size()[{index}] <= {held[-1]}")
    except Exception:  # inputs of other names, as of *args; functions of SymPy
        return [limit]
    return texts if len(places) == 1 or not texts else [limit]


def limits_text(net: Any, programs: dict[str, Any], inputs: Sequence[Any], most: int = 3) -> str:
    """`it holds for image.size()[3] <= 40`: what torch.export noted of the sizes as it followed the code."""
    found = [re.sub(r"L\['(\w+)'\]", r"\1", guard) for program in programs.values()
             for guard in getattr(program, "_guards_code", [])]
    # What is fixed is in free_text, and most sizes that must not be 1 are PyTorch's own, in every convolution.
    found = [each for each in found if not re.fullmatch(r"\w+\.size\(\)\[\d+\] == \d+|.* != [01]", each)]
    shapes = {name: list(each.shape) for name, each in zip(inspect.signature(net.forward).parameters, inputs)}
    limits = list(dict.fromkeys(text for limit in dict.fromkeys(found)
                                for text in (in_plain_words(limit, shapes) if "//" in limit else [limit])))
    more = f" and {len(limits) - most} more" if len(limits) > most else ""
    return f"it holds for {', '.join(limits[:most])}{more}" if limits else ""


def packages_text(programs: dict[str, Any]) -> str:
    """Operators of packages, which are no operations of PyTorch."""
    import torch

    targets = {node.target for program in programs.values() for node in program.graph.nodes}
    names = sorted({str(each) for each in targets if isinstance(each, torch._ops.OpOverload)
                    and each.namespace not in ("aten", "prims", "prim")})
    return (f"it calls {', '.join(names)}, of a package: stepop has that only where your own C++ registers it; a switch of "
            "the package for plain PyTorch (an `implementation`) helps" if names else "")


def share_weights(source: str, path: str) -> None:
    """Copies a file of package_pt2, which has the weights of each graph, with those of both graphs once."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        prefix = old.namelist()[0].split("/")[0] + "/data/weights/"
        configs = {name: json.loads(old.read(f"{prefix}{name}_weights_config.json")) for name in ("model", "eval")}
        left_out = set()
        for name, entry in configs["eval"]["config"].items():
            shared = configs["model"]["config"].get(name, entry)
            ours, theirs = (old.getinfo(prefix + each["path_name"]) for each in (entry, shared))
            same = (ours.CRC, ours.file_size, entry["tensor_meta"]) == (theirs.CRC, theirs.file_size, shared["tensor_meta"])
            if same and ours.filename != theirs.filename:
                left_out.add(ours.filename)
                entry["path_name"] = shared["path_name"]
        left_out -= {prefix + entry["path_name"] for config in configs.values() for entry in config["config"].values()}
        for info in old.infolist():
            if info.filename == f"{prefix}eval_weights_config.json":
                new.writestr(info, json.dumps(configs["eval"]))
            elif info.filename not in left_out:
                with old.open(info) as part, new.open(info, "w") as copy_of_part:
                    shutil.copyfileobj(part, copy_of_part, 1 << 20)


def take_signs(program: Any) -> None:
    """Makes plain tensors of those that are stored with the other sign, as of `z.conj().imag`: a file has no mark of it."""
    import torch

    for tensors in (program.state_dict, program.constants):
        for name, tensor in tensors.items():
            if isinstance(tensor, torch.Tensor) and tensor.is_neg():
                plain = tensor.detach().resolve_neg()
                is_parameter = isinstance(tensor, torch.nn.Parameter)
                tensors[name] = torch.nn.Parameter(plain, tensor.requires_grad) if is_parameter else plain


def write_programs(programs: dict[str, Any], path: str) -> None:
    """Writes the graphs as one file, which is there as a whole or not at all."""
    from torch.export.pt2_archive._package import package_pt2

    for program in programs.values():
        take_signs(program)
    parts = [path + ".all.tmp", path + ".tmp"]
    try:
        with open(parts[0], "wb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            package_pt2(file, exported_programs=programs)
        share_weights(*parts)
        os.replace(parts[1], path)
    finally:
        for part in parts:
            if os.path.exists(part):
                os.remove(part)


def run(arguments: argparse.Namespace) -> str:
    import torch

    folder = os.path.dirname(os.path.abspath(arguments.output))
    if not os.path.isdir(folder):
        raise CannotExport(f"-o {arguments.output}: there is no folder {folder}")
    if arguments.network.endswith(".pt2"):
        return compile_again(arguments)
    if not arguments.example:
        raise CannotExport("--example is missing: an input, batch first, such as image=4,3,224,224; once for each input")
    net = make(arguments.network, arguments.kwargs)
    named = [example(text) for text in arguments.example]
    names = [name for name, _ in named]
    inputs = [tensor for _, tensor in named]
    if any(tensor.dim() == 0 or tensor.shape[0] < 2 for tensor in inputs):
        raise CannotExport("--example: the first size is the batch and must be 2 or more, so that it stays free")
    chosen = chosen_sizes(arguments.free, named)
    if arguments.compile and not arguments.free:  # code for one size is faster, and so is compiling it
        chosen = [{0} if tensor.dim() > 0 else set() for tensor in inputs]
    try_out(net, named, arguments.network.rpartition(":")[0])
    check_structure(net, inputs)
    refuse_complex(net)
    notes = keep_changed_state(net, inputs)
    try:
        programs, fixed = export_both(net, inputs, chosen=chosen)
    except Exception as error:
        raise CannotExport(f"torch.export cannot export it: {reason_of(error)}") from error
    refuse_fixed(programs["model"], named, chosen)
    largest = check(net, programs, inputs)
    notes += [check_one_example(net, programs, inputs), check_gradients(net, programs["model"], inputs, names),
              limits_text(net, programs, inputs), packages_text(programs)]
    write_programs(programs, arguments.output)
    count = sum(parameter.numel() for parameter in net.parameters())
    if fixed and any(each.dim() > 2 for each in inputs):
        notes.insert(0, f"only the batch's size is free: {fixed}")
    if arguments.compile:
        try:
            notes.append(add_passes(arguments.output, programs, inputs, arguments.compile, arguments.output))
        except CannotCompile as error:
            raise CannotExport(f"{arguments.output} is written, without compiled passes: {error}") from error
    note = "".join(f"{text}\n" for text in notes if text)
    return (f"{arguments.output}: {count:,} parameters, takes {free_text(programs['model'], names)}; "
            f"largest difference to Python {largest:.1g}\n{note}{model_line(arguments)}")


def model_line(arguments: argparse.Namespace) -> str:
    compiled = ", compiled: true" if arguments.compile else ""
    return f"model: {{class: Exported, path: {arguments.output}{compiled}}}"


def compile_again(arguments: argparse.Namespace) -> str:
    if not os.path.isfile(arguments.network):
        raise CannotExport(f"no such file: {arguments.network}")
    if not arguments.compile or arguments.example or arguments.free or arguments.kwargs != "{}":
        raise CannotExport(f"{arguments.network} is exported already, and can be compiled: {arguments.network} --compile -o "
                           f"{arguments.network}, without other words")
    return f"{arguments.output}: {compile_file(arguments.network, arguments.compile, arguments.output)}\n{model_line(arguments)}"


def target(text: str) -> Target:
    try:
        return Target.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m stepop.eval.export",
                                     description="Exports a network of PyTorch for stepop, by torch.export.")
    parser.add_argument("network", help="a class or a function that makes it: my_net.py:Net, "
                        "torchvision.models:resnet18; or an exported file, to be compiled")
    parser.add_argument("--kwargs", default="{}", help="the arguments of the class or function, a map in JSON")
    parser.add_argument("--example", action="append", default=[], metavar="NAME=SIZES",
                        help="an input, batch first: image=4,3,224,224, or tokens=4,16:int64:1000; once for each input")
    parser.add_argument("--free", action="append", default=[], metavar="NAME=PLACES",
                        help="sizes of an input that may differ, image=0,2,3 (0 is the batch, which always may); by default "
                        "heights, widths and lengths where the network allows it, with --compile the batch's alone")
    parser.add_argument("--compile", nargs="?", type=target, const=Target(), metavar="PRECISION",
                        help="also compile the passes of training and evaluation for this kind of processor, or for this kind "
                        "of GPU (cuda:bfloat16), which takes minutes, in the precision that they are to be trained in: float32 "
                        "(default), bfloat16 or float16; sizes like those of the examples are the fastest")
    parser.add_argument("--seed", type=int, default=1, help="of the initial weights (1)")
    parser.add_argument("-o", "--output", help="the file to write (net.pt2, or the exported file itself)")
    arguments = parser.parse_args(words)
    arguments.output = arguments.output or (arguments.network if arguments.network.endswith(".pt2") else "net.pt2")
    try:
        import torch
    except ImportError:
        sys.exit(f"stepop.eval.export: torch is missing: {sys.executable} -m pip install torch")
    warnings.simplefilter("ignore")  # PyTorch's own, about its own code
    logging.disable(logging.ERROR)
    torch.manual_seed(arguments.seed)
    try:
        print(run(arguments))
    except CannotExport as error:
        sys.exit(f"stepop.eval.export: {error}")


if __name__ == "__main__":
    main()
