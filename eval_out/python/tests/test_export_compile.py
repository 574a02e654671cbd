"""What --compile says where it makes nothing, and what the compiled code must not assume."""

import contextlib
import copy
import io
import os
import unittest
from unittest import mock

from stepop.eval import export, export_compile, export_compile_check, export_passes, export_target
from stepop.eval.export_check import CannotCompile
from tests import files

NETS = '''
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x): return self.layer(x)

class Writes(Net):
    def forward(self, x): return self.layer(x.mul_(2))

class Twice(Net):
    def forward(self, x):
        y = self.layer(x)
        return y, y
'''


class CompileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = files.scratch()
        (cls.folder / "nets.py").write_text(NETS)

    def export(self, *words):
        """What it printed, or the message that it ended with."""
        out = io.StringIO()
        with files.inside(self.folder), contextlib.redirect_stdout(out):
            try:
                export.main(list(words))
            except SystemExit as end:
                return end.code.removeprefix("stepop.eval.export: ")
        return out.getvalue()

    def test_a_file_that_is_compiled_again_takes_no_other_words(self):
        self.assertEqual(self.export("nowhere.pt2", "--compile"), "no such file: nowhere.pt2")
        self.assertEqual(self.export("nets.py:Net"),
                         "--example is missing: an input, batch first, such as image=4,3,224,224; once for each input")
        self.export("nets.py:Net", "--example", "x=4,3", "-o", "there.pt2")
        before = (self.folder / "there.pt2").read_bytes()
        said = "there.pt2 is exported already, and can be compiled: there.pt2 --compile -o there.pt2, without other words"
        self.assertEqual(self.export("there.pt2"), said)
        self.assertEqual(self.export("there.pt2", "--compile", "--example", "x=4,3"), said)
        (self.folder / "bad.pt2").write_text("no archive")
        self.assertRegex(self.export("bad.pt2", "--compile"), "^bad.pt2: cannot be read as a program of torch.export: ")
        self.assertEqual((self.folder / "there.pt2").read_bytes(), before)
        self.assertFalse((self.folder / "net.pt2").exists())  # the file itself is what -o is without a word

    def test_what_cannot_be_compiled_is_said_and_the_graph_is_written(self):
        written = "net.pt2 is written, without compiled passes: "
        for network, why in (
                ("Writes", "forward changes its input in place, which compiled passes do not: x = x * 2, not x.mul_(2)"),
                ("Twice", "forward returns one tensor twice: return a .clone() of it")):
            self.assertEqual(self.export(f"nets.py:{network}", "--example", "x=4,3", "--compile"), written + why)
            self.assertTrue((self.folder / "net.pt2").exists())
            (self.folder / "net.pt2").unlink()
        with mock.patch("torch._inductor.cpp_builder.get_cpp_compiler", side_effect=RuntimeError):
            self.assertEqual(self.export("nets.py:Net", "--example", "x=4,3", "--compile"),
                             written + "a C++ compiler is missing: apt-get install g++")
        (self.folder / "net.pt2").unlink()
        self.assertEqual([name for name in os.listdir(self.folder) if ".tmp" in name], [])

    def test_code_for_one_of_the_free_sizes_is_refused(self):
        import torch

        values = [torch.zeros(4, 3, 12)]
        export_compile.refuse_fixed([["4", "3", "12"]], values)
        with self.assertRaisesRegex(CannotCompile, "^the code would hold for 12 alone as size 2 of input 0, which the graph "
                                                   "leaves free: --free without it$"):
            export_compile.refuse_fixed([["4", "3", "s1"]], values)

    def compared(self, precision, changed, change):
        """What the comparison says of passes with another gradient of one parameter, in a network of two normalizations."""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        inputs = [torch.randn(2, 3)[[0, 1, 0]]]
        document = {"precision": precision, "device": "cpu", "passes": {"training": True, "evaluation": False}}
        autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")

        class Passes:
            def __init__(self, training, paths, tensors, device):
                self.net = copy.deepcopy(net).train(training)
                self.tensors = tensors

            def __call__(self, x):
                tensors = dict(self.tensors)
                exact = tensors[changed]
                tensors[changed] = exact.detach() + Changed.apply(exact - exact.detach())
                with autocast:
                    return torch.func.functional_call(self.net, tensors, (x,))

        class Changed(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x.clone()

            @staticmethod
            def backward(context, gradient):
                return change(gradient)

        modes = {"model": net.train(), "eval": copy.deepcopy(net).eval()}
        with mock.patch.object(export_compile_check, "Passes", Passes):
            return export_compile_check.check_passes(modes, document, {}, inputs, lambda module: module, lambda: autocast)

    def test_the_comparison_knows_rounding_from_wrong_gradients(self):
        """Before a normalization of two different examples gradients are rounding alone, and behind it they are not."""
        for precision, factor in (("float32", 1.01), ("bfloat16", 1.5)):
            with self.subTest(precision=precision):
                largest, rounding = self.compared(precision, "2.weight", lambda gradient: gradient)
                self.assertLess(largest, 1e-5)
                self.assertEqual("the gradient of 0.weight" in rounding, precision == "bfloat16")
                self.assertNotIn("the gradient of 2.weight", rounding)
                with self.assertRaisesRegex(
                        CannotCompile, r"^the compiled backward pass has other gradients than the graph for 2\.weight "
                                       r"\(by 0\.0?[15] of their size\)$"):
                    self.compared(precision, "2.weight", lambda gradient, factor=factor: gradient * factor)
                for gradient in (0.0, float("nan")):
                    with self.assertRaisesRegex(CannotCompile, r"gradients than the graph for 2\.weight "):
                        self.compared(precision, "2.weight", lambda exact, gradient=gradient: exact * gradient)
        self.compared("bfloat16", "0.weight", lambda gradient: gradient * 2)
        with self.assertRaisesRegex(CannotCompile, r"gradients than the graph for 0\.weight "):
            self.compared("bfloat16", "0.weight", lambda gradient: gradient + 10)

    def test_rounding_is_of_the_coarsest_numbers_in_the_graph(self):
        import torch

        class Under(torch.nn.Linear):
            def forward(self, x):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    y = super().forward(x)
                return y.float()

        for network, precision, expected in ((torch.nn.Linear, "float32", "float32"), (Under, "float32", "bfloat16"),
                                             (torch.nn.Linear, "float16", "float16"), (Under, "float16", "bfloat16")):
            graph = export_compile.plain_module(torch.export.export(network(3, 2), (torch.zeros(4, 3),)))
            self.assertEqual(export_compile_check.coarsest(graph, precision), expected)
        with mock.patch.object(export_compile_check, "coarsest", return_value="bfloat16"):  # else 1.01 is refused, see above
            self.compared("float32", "2.weight", lambda gradient: gradient * 1.01)
            with self.assertRaises(CannotCompile):
                self.compared("float32", "2.weight", lambda gradient: gradient * 1.5)

    def test_what_passes_are_compiled_for(self):
        target = export_target.Target
        self.assertEqual(target.read("bfloat16"), target("cpu", "bfloat16"))
        self.assertEqual(target.read("cuda:float32"), target("cuda", "float32"))
        for text in ("", "double", "cuda", "tpu:float32", ":float32"):
            with self.assertRaisesRegex(ValueError, f"^expected float32, bfloat16 or float16, for a GPU cuda:float32 and so on, "
                                                    f"found '{text}'$"):
                target.read(text)
        with mock.patch("torch.cuda.is_available", return_value=False):
            self.assertRegex(self.export("nets.py:Net", "--example", "x=4,3", "--compile", "cuda:bfloat16"),
                             r"^net.pt2 is written, without compiled passes: there is no GPU that PyTorch \S+ sees$")

    def test_the_instructions_of_a_processor_are_those_that_compilers_use(self):
        path = self.folder / "cpuinfo"
        for text, expected in (("flags\t\t: fpu sse2 ht avx2 aes fma\n", ["aes", "avx2", "fma", "sse2"]),
                               ("BogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes cpuid asimddp sve2 sm3\n",
                                ["aes", "asimd", "asimddp", "fp", "sm3", "sve2"]),
                               ("processor\t: 0\n", [])):
            path.write_text(text)
            self.assertEqual(export_target.processor_features(str(path)), expected)

    def test_a_part_of_a_tensor_is_not_dense(self):
        import torch

        whole = torch.zeros(4, 6)
        self.assertTrue(export_passes.is_dense(whole))
        self.assertTrue(export_passes.is_dense(whole.t()))
        self.assertFalse(export_passes.is_dense(whole[:, :5]))
        self.assertFalse(export_passes.is_dense(torch.ones(1).expand(3)))

    def test_operations_are_left_to_libtorch_while_compiling_alone(self):
        import torch
        from torch._inductor.decomposition import decompositions
        from torch._inductor.lowering import lowerings

        operation = torch.ops.aten.embedding_dense_backward.default
        convolution = torch.ops.aten.convolution_backward.default
        before = lowerings[convolution]
        self.assertIn(operation, decompositions)
        with mock.patch.dict(os.environ, CI="true"), export_target.inductor_settings():
            self.assertNotIn("CI", os.environ)  # under which inductor refuses what it could decompose
            self.assertNotIn(operation, decompositions)
            self.assertIsNot(lowerings[convolution], before)
            self.assertTrue(torch.are_deterministic_algorithms_enabled())
        self.assertIn(operation, decompositions)
        self.assertIs(lowerings[convolution], before)
        self.assertFalse(torch.are_deterministic_algorithms_enabled())


if __name__ == "__main__":
    unittest.main()
