"""Compiles the passes of an exported network ahead of time, by PyTorch's inductor.

A file of `stepop.eval.export` then has, beside its graphs, native code for the forward and the backward pass of a
training and for the forward pass of an evaluation. Parameters are inputs of that code, which so has no copy of them.
`data/compiled/passes.json` says what each pass takes and returns; models/README.md describes it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import tempfile
import time
import traceback
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from stepop.eval.export_check import CannotCompile, CannotExport, listed, mode_of
from stepop.eval.export_compile_check import check_passes
from stepop.eval.export_passes import divide, placeholders, result_of, results, source_of
from stepop.eval.export_target import Target, inductor_settings

#: The version of passes.json.
VERSION = 1

def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'without a text'}"


def place_of(graph_module: Any, error: BaseException) -> str:
    """` (the module layer1.0, in my_net.py, line 7)`, of the operation that the error names; empty where it names none."""
    found = re.search(r"target: ([\w.]+)", str(error))
    if found is None:
        return ""
    for node in graph_module.graph.nodes:
        if str(node.target) != found[1]:
            continue
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        trace = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
        parts = [f"the module {stack[-1][0]}"] if stack and stack[-1][0] else []
        parts += [f"in {os.path.basename(trace[-1][0])}, line {trace[-1][1]}"] if trace else []
        return f" ({found[1]}{', ' if parts else ''}{', '.join(parts)})"
    return f" ({found[1]})"


class Compiler:
    """Compiles graphs into libraries in a folder, and notes their files."""

    def __init__(self, folder: str, target: Target) -> None:
        self.folder = folder
        self.target = target
        self.files: dict[str, str] = {}  # paths by their names in the archive

    def compile(self, graph_module: Any, name: str) -> list[dict[str, Any]]:
        """The files of a pass, the library first, as passes.json has them."""
        from torch._inductor.compile_fx import compile_fx_aot

        inputs = [node.meta["val"] for node in placeholders(graph_module)]
        output = os.path.join(self.folder, name)
        os.makedirs(output)
        try:
            made = compile_fx_aot(graph_module, inputs, config_patches={
                **self.target.options(), "aot_inductor.output_path": os.path.join(output, f"{name}.wrapper")})
        except Exception as error:
            raise CannotCompile(f"the {name.replace('_', ' ')} pass: {first_line(error)}"
                                f"{place_of(graph_module, error)}") from error
        libraries = [each for each in made if isinstance(each, str) and each.endswith(".so")]
        if len(libraries) != 1:
            raise CannotCompile(f"the {name.replace('_', ' ')} pass: inductor wrote {len(libraries)} libraries")
        # A description of operations that have no C function lies beside the library, where it is needed.
        beside = libraries[0][:-len(".so")] + ".json"
        return [self.add(path, f"{name}{os.path.splitext(path)[1]}") for path in (libraries[0], beside) if os.path.exists(path)]

    def add(self, path: str, name: str) -> dict[str, Any]:
        member = f"data/compiled/{name}"
        self.files[member] = path
        with open(path, "rb") as file:
            content = file.read()
        return {"path": member, "size": len(content), "crc32": zlib.crc32(content)}


@contextlib.contextmanager
def tracing(program: Any) -> Iterator[list[Any]]:
    """The fake tensors of an exported program's inputs, which know which sizes are free."""
    import torch
    from torch._guards import TracingContext, detect_fake_mode

    users = set(program.graph_signature.user_inputs)
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    fake_mode = detect_fake_mode(values)
    with torch._guards.tracing(TracingContext(fake_mode)):
        yield values


def free_places(values: Sequence[Any]) -> list[list[str]]:
    """The sizes of inputs as the graph knows them now: symbols, or numbers."""
    return [[str(size) for size in value.shape] for value in values]


def refuse_fixed(before: list[list[str]], values: Sequence[Any]) -> None:
    """Throws where code was made for one of the sizes that are free in the graph."""
    for number, (old, new) in enumerate(zip(before, free_places(values))):
        for place, (symbol, size) in enumerate(zip(old, new)):
            if symbol != size:
                raise CannotCompile(f"the code would hold for {size} alone as size {place} of input {number}, which the graph "
                                    "leaves free: --free without it")


def plain_module(program: Any) -> Any:
    """The module of a program, without its notes on the types that tensors had at the export."""
    import torch

    module = program.module(check_guards=False)
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in list(part.graph.nodes):
            if node.target == torch.ops.aten._assert_tensor_metadata.default:
                part.graph.erase_node(node)
        part.recompile()
    return module


def arguments_of(program: Any, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs in the structure of forward's arguments."""
    import torch

    args, kwargs = torch.utils._pytree.tree_unflatten(list(values), program.call_spec.in_spec)
    return args, kwargs


def compile_training(program: Any, compiler: Compiler) -> dict[str, Any]:
    import torch
    import torch._inductor.lowering  # noqa: F401 (it registers what the decompositions need)
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch._inductor.decomposition import select_decomp_table

    module = plain_module(program)
    with contextlib.ExitStack() as stack, tracing(program) as values, inductor_settings(compiler.target):
        free = free_places(values)
        args, kwargs = arguments_of(program, values)
        with torch.enable_grad(), compiler.target.autocast():
            joint = aot_export_joint_with_descriptors(stack, module, args, kwargs, decompositions=select_decomp_table())
        forward, backward, described = divide(joint.graph_module)
        described.update({"forward": compiler.compile(forward, "training_forward"),
                          "backward": compiler.compile(backward, "training_backward")})
        refuse_fixed(free, values)
        return described


@contextlib.contextmanager
def untrained(module: Any) -> Iterator[None]:
    """No parameter wants gradients; the programs of both modes may share them."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


def compile_evaluation(program: Any, compiler: Compiler) -> dict[str, Any]:
    import torch
    from torch._functorch._aot_autograd import descriptors
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch._inductor.decomposition import select_decomp_table

    module = plain_module(program)
    with contextlib.ExitStack() as stack, tracing(program) as values, untrained(module), inductor_settings(compiler.target):
        free = free_places(values)
        args, kwargs = arguments_of(program, values)
        with torch.no_grad(), compiler.target.autocast():
            made = aot_export_joint_with_descriptors(stack, module, args, kwargs, decompositions=select_decomp_table())
        graph_module = made.graph_module
        sources = [source_of(node) for node in placeholders(graph_module)]
        nodes, described = results(graph_module)
        returned = [result_of(desc) for desc in described
                    if isinstance(desc, (descriptors.PlainAOTOutput, descriptors.InputMutationAOTOutput))]
        if len(returned) != len(nodes):
            raise CannotCompile("the pass of the evaluation returns something else than results")
        files = compiler.compile(graph_module, "evaluation_forward")
        refuse_fixed(free, values)
        return {"inputs": sources, "results": returned, "forward": files}


def compile_passes(programs: dict[str, Any], compiler: Compiler) -> dict[str, Any]:
    """passes.json, for programs "model" (training) and "eval"."""
    import torch

    passes = {}
    for name, training, compile_one in (("model", True, compile_training), ("eval", False, compile_evaluation)):
        if name not in programs:
            continue
        try:
            passes[mode_of(training)] = compile_one(programs[name], compiler)
        except CannotCompile:
            raise
        except Exception as error:
            where = [f" in {os.path.basename(frame.filename)}, line {frame.lineno}"
                     for frame in traceback.extract_tb(error.__traceback__)
                     if "torch" + os.sep not in frame.filename and not frame.filename.startswith("<")
                     and os.path.dirname(__file__) not in frame.filename]
            raise CannotCompile(f"the {mode_of(training)}: {first_line(error)}{where[-1] if where else ''}") from error
    return {"version": VERSION, "torch": torch.__version__.partition("+")[0], "precision": compiler.target.precision,
            **compiler.target.machine(), "passes": passes}


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder for what compilers write, and for inductor's own cache without precompiled headers, which is gone afterwards."""
    folder = tempfile.mkdtemp(prefix="stepop-compile-")
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "cache")
    try:
        yield folder
    finally:
        if before is None:
            del os.environ["TORCHINDUCTOR_CACHE_DIR"]
        else:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


def compiler_is_there() -> None:
    """Throws where inductor would not find a compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception as error:
        raise CannotCompile("a C++ compiler is missing: apt-get install g++") from error


def on_gpu(programs: dict[str, Any], inputs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
    import torch
    from torch.export.passes import move_to_device_pass

    if not torch.cuda.is_available():
        raise CannotCompile(f"there is no GPU that PyTorch {torch.__version__} sees")
    return ({name: move_to_device_pass(copy.deepcopy(program), "cuda") for name, program in programs.items()},
            [each.to("cuda") for each in inputs])


def add_passes(path: str, programs: dict[str, Any], inputs: Sequence[Any], target: Target, output: str) -> str:
    """Copies the file `path` to `output` with the compiled passes of its programs; what there is to say of them."""
    compiler_is_there()
    if target.is_gpu():
        programs, inputs = on_gpu(programs, inputs)
    begin = time.monotonic()
    part = output + ".tmp"
    try:
        with scratch() as folder:
            compiler = Compiler(folder, target)
            document = compile_passes(programs, compiler)
            try:
                largest, rounding = check_passes(programs, document, compiler.files, inputs, plain_module, target.autocast)
            except CannotCompile:
                raise
            except Exception as error:
                raise CannotCompile(f"the passes do not run: {first_line(error)}") from error
            with zipfile.ZipFile(path) as old, zipfile.ZipFile(part, "w") as new:
                root = old.namelist()[0].split("/")[0]
                for info in old.infolist():
                    if not info.filename.startswith(f"{root}/data/compiled/"):
                        with old.open(info) as member, new.open(info, "w") as copy_of_member:
                            shutil.copyfileobj(member, copy_of_member, 1 << 20)
                new.writestr(f"{root}/data/compiled/passes.json", json.dumps(document))
                for member_name, member_path in compiler.files.items():
                    new.write(member_path, f"{root}/{member_name}")
            size = sum(os.path.getsize(each) for each in compiler.files.values())
        os.replace(part, output)
    finally:
        if os.path.exists(part):
            os.remove(part)
    note = f"; rounding alone: {listed(rounding)}" if rounding else ""
    return (f"compiled for {target}: {time.monotonic() - begin:.0f} s, {size / 1e6:.1f} MB; largest "
            f"difference to the graph {largest:.1g}{note}")


def compile_file(path: str, target: Target, output: str) -> str:
    """Compiles the passes of a file that `stepop.eval.export` wrote; the text for its user."""
    from torch.export.pt2_archive._package import load_pt2

    try:
        programs = dict(load_pt2(path).exported_programs)
    except Exception as error:
        raise CannotExport(f"{path}: cannot be read as a program of torch.export: {first_line(error)}") from error
    if "model" not in programs:
        raise CannotExport(f"{path}: it has the programs {', '.join(sorted(programs))}, and no model")
    programs.setdefault("eval", programs["model"])  # as stepop runs a file of one graph
    examples = programs["model"].example_inputs
    if examples is None:
        raise CannotExport(f"{path}: it has no example inputs: export the network again")
    import torch

    with tracing(programs["model"]) as values:
        if any(value.dim() > 0 and not isinstance(value.shape[0], torch.SymInt) for value in values):
            raise CannotExport(f"{path}: its batch has one size; stepop.eval.export leaves it free")
    inputs = [each for each in torch.utils._pytree.tree_leaves(examples) if isinstance(each, torch.Tensor)]
    return add_passes(path, programs, inputs, target, output)
