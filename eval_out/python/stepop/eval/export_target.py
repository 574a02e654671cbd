"""What passes are compiled for, and how inductor is asked to compile them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

from stepop.eval.export_compile_check import TOLERANCES

#: How inductor is asked to compile: random numbers from LibTorch's generator, as without it; any number of threads.
#: Results of convolutions have the layout of their inputs, which with `layout_optimization` depends on oneDNN. Inductor's
#: precompiled headers, which save a third of the time and stay in a folder of its own, need the program openssl.
OPTIONS = {"aot_inductor.package": True, "fallback_random": True, "cpp.dynamic_threads": True, "layout_optimization": False,
           "aot_inductor.precompile_headers": shutil.which("openssl") is not None}


class Target(NamedTuple):
    """What passes are compiled for."""

    device: str = "cpu"  # or cuda
    precision: str = "float32"  # bfloat16 or float16: operations as torch.autocast has them

    @staticmethod
    def read(text: str) -> "Target":
        """`bfloat16`, or `cuda:bfloat16`."""
        device, colon, precision = text.rpartition(":")
        if precision not in TOLERANCES or (colon and device not in ("cpu", "cuda")):
            raise ValueError(f"expected float32, bfloat16 or float16, for a GPU cuda:float32 and so on, found {text!r}")
        return Target(device or "cpu", precision)

    def autocast(self) -> Any:
        import torch

        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device, getattr(torch, self.precision))

    def options(self) -> dict[str, Any]:
        """How inductor is asked to compile."""
        return {**OPTIONS, "aot_inductor.embed_kernel_binary": True} if self.is_gpu() else OPTIONS

    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def machine(self) -> dict[str, Any]:
        """What runs the code, for passes.json."""
        import torch

        machine: dict[str, Any] = {"device": self.device, "processor": processor_features()}
        return {**machine, "gpu": torch.cuda.get_device_name()} if self.is_gpu() else machine

    def __str__(self) -> str:
        return f"{'this kind of GPU' if self.is_gpu() else 'this processor'} in {self.precision}"


@contextlib.contextmanager
def replaced(table: MutableMapping[Any, Any], key: Any, instead: Any = None) -> Iterator[None]:
    """Takes an entry out of a table, such as an operation out of one of inductor's, or puts something else there."""
    own = table.pop(key, None)
    if instead is not None:
        table[key] = instead
    try:
        yield
    finally:
        table.pop(key, None)
        if own is not None:
            table[key] = own


@contextlib.contextmanager
def inductor_settings(target: Target = Target()) -> Iterator[None]:
    """How all passes are compiled.

    Sums have one order with any threads, as in LibTorch's own kernels; a backward pass runs outside of autocast; and
    LibTorch computes that of a convolution, as inductor's choice of its kernel fixes sizes that are free. Under the variable
    `CI`, which services for continuous integration set, inductor refuses to leave to LibTorch what it can decompose.
    """
    import torch
    from torch._inductor.decomposition import decompositions
    from torch._inductor.kernel import conv
    from torch._inductor.lowering import lowerings

    aten = torch.ops.aten
    backward = aten.convolution_backward.default
    librarys_backward = getattr(conv, "aten_convolution_backward_fallback", lowerings.get(backward))
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with (torch._inductor.config.patch(target.options()), torch._functorch.config.patch(backward_pass_autocast="off"),
              replaced(decompositions, aten.embedding_dense_backward.default),  # whose own kernel adds in one order
              replaced(lowerings, backward, librarys_backward), replaced(os.environ, "CI")):
            yield
    finally:
        torch.use_deterministic_algorithms(was_deterministic)


#: Those instructions that compilers use, by the name of the line in /proc/cpuinfo: of x86-64, and of aarch64.
FEATURES = {
    "flags": r"(avx|sse|ssse|fma$|f16c$|bmi|lzcnt|abm$|movbe$|popcnt$|amx|vaes|vpclmul|gfni|sha_ni|adx|aes$|pclmul)",
    "Features": r"(fp|asimd|sve|sme|bf16|i8mm|atomics|fcma|jscvt|i?lrcpc|uscat|flagm|frint|crc32|aes$|pmull|sha|sm[34]$)",
}


def processor_features(path: str = "/proc/cpuinfo") -> list[str]:
    """The instructions of this processor that compilers use, sorted."""
    with contextlib.suppress(OSError), open(path) as file:
        for line in file:
            name, _, all_of_them = line.partition(":")
            if name.strip() in FEATURES:
                return sorted(each for each in all_of_them.split() if re.match(FEATURES[name.strip()], each))
    return []
