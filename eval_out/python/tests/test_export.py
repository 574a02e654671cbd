"""What python -m stepop.eval.export writes, and what it refuses, by whole messages."""

import contextlib
import io
import os
import sys
import unittest

from stepop.eval import export
from tests import files

NETS = '''
import random
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.layer = nn.Linear(3, width)
    def forward(self, x): return self.layer(x)

class Decides(nn.Module):
    def forward(self, x): return x if x.sum() > 0 else -x

class Draws(nn.Module):
    """The graph keeps the number that Python drew at the export."""
    def forward(self, x): return x * random.random()

class Two(nn.Module):
    def forward(self, x, y): return x + y

def make(width=4): return Net(width)
def number(): return 3
net = Net(5)
three = 3

class Fixed(nn.Module):
    def forward(self, x):
        return x.reshape(4, 3)

class Counts(nn.Module):
    def forward(self, x): return {"x": x, "count": 4}

class Asks(nn.Module):
    def forward(self, x):
        is_large = x.sum().item() > 3
        return x if is_large else -x
'''

GRADIENTS = '''
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, gradient): return -gradient

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, gradient): return gradient * 2

class Base(nn.Module):
    def __init__(self, zero=False):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 2)
        if zero: nn.init.zeros_(self.b.weight)
    def between(self, x): return x
    def forward(self, x): return self.b(self.between(self.a(x)))

class Dann(Base):
    def between(self, x): return Reversed.apply(x)
class Same(Base):
    def between(self, x): return Doubled.apply(x)
class Detached(Base):
    def between(self, x): return x + (x.round() - x).detach()
class TensorHook(Base):
    def between(self, x):
        if x.requires_grad:
            x.register_hook(lambda gradient: gradient * 3)
        return x
class ParameterHook(Base):
    def __init__(self):
        super().__init__()
        self.a.weight.register_hook(lambda gradient: gradient / 10)
class ModuleHook(Base):
    def __init__(self):
        super().__init__()
        self.b.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
class Reentrant(Base):
    def between(self, x): return checkpoint(torch.tanh, x, use_reentrant=True)
class Checkpointed(Base):
    def between(self, x): return checkpoint(torch.tanh, x, use_reentrant=False)
class Dropped(Base):
    def between(self, x): return nn.functional.dropout(x, 0.5, self.training)
class Tied(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 4)
        self.d = nn.Linear(4, 4)
        self.d.weight = self.c.weight
    def between(self, x): return self.d(self.c(x))
'''

STATE = '''
import typing
import torch
from torch import nn

class Complex(nn.Module):
    def __init__(self, as_buffer=False, persistent=True):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        w = torch.randn(2, dtype=torch.cfloat)
        if as_buffer: self.register_buffer("w", w, persistent)
        else: self.w = nn.Parameter(w)
    def forward(self, x): return self.layer(torch.fft.irfft(torch.fft.rfft(x) * self.w, n=3))

class Center(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("center", torch.zeros(3), persistent=False)
        self.register_buffer("table", torch.arange(3.0), persistent=False)
    def forward(self, x):
        if self.training: self.center.add_(x.detach().mean(0))
        return self.layer(x - self.center + self.table)

class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.inner.calls = 0
    def forward(self, x):
        self.inner.calls += 1
        return self.inner(x) * self.inner.calls

class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x): return self.layer(x.mul_(2))

class Negated(Writes):
    """-1, -2, -3 in a buffer, -5, -6, -7 in another and -10, -12, -14 in a parameter, each stored with the other sign."""
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch._neg_view(torch.arange(1.0, 4.0)))
        self.register_buffer("b", torch._neg_view(torch.arange(5.0, 8.0)), persistent=False)
        self.c = nn.Parameter(torch._neg_view(torch.arange(10.0, 15.0, 2.0)))
    def forward(self, x): return x + self.a + self.b + self.c

class Length(Writes):
    def forward(self, x): return self.layer(x) + torch.zeros(len(x), 1)
class Single(Writes):
    def forward(self, x): return self.layer(x * 2 if x.shape[0] == 1 else x)
class Pair(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor
class Named(Writes):
    def forward(self, x): return Pair(self.layer(x), x) if self.training else self.layer(x)
class Auxiliary(Writes):
    def forward(self, x): return (self.layer(x), x) if self.training else self.layer(x)
class Starred(Writes):
    def forward(self, *args, **kwargs): return self.layer(args[0]) + args[1]
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    def forward(self, x): return self.layer(x)
@torch.library.custom_op("mine::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor: return x * 2
doubled.register_fake(lambda x: torch.empty_like(x))
doubled.register_autograd(lambda ctx, gradient: gradient * 2)
class Custom(Writes):
    def forward(self, x): return self.layer(doubled(x))
class Narrow(Writes):
    def forward(self, x): return self.layer(x).sum(1) if x.shape[1] > 40 else x.sum(1) + self.layer.bias.sum()
class Halves(nn.Module):
    def forward(self, x): return x + 1 if x.shape[2] // 2 < 40 else x
class Groups(nn.Sequential):
    """PyTorch compares products of quotients of the sizes here, which differ for all sizes but 1 and 2."""
    def __init__(self): super().__init__(nn.Conv2d(3, 4, 3, 2, 1), nn.GroupNorm(2, 4))
'''


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = files.scratch()
        (cls.folder / "nets.py").write_text(NETS)
        (cls.folder / "gradients.py").write_text(GRADIENTS)
        (cls.folder / "state.py").write_text(STATE)
        cls.addClassCleanup(setattr, sys, "path", list(sys.path))

    def export(self, network, *words, example="x=4,3"):
        """What it printed, or the message that it ended with."""
        out = io.StringIO()
        with files.inside(self.folder), contextlib.redirect_stdout(out):
            try:
                export.main([network, *(["--example", example] if example else []), *words])
            except SystemExit as end:
                return end.code
        return out.getvalue()

    def test_the_seed_decides_on_the_initial_weights(self):
        import torch

        weights = {}
        for words in ((), ("--seed", "1"), ("--seed", "2")):
            self.export("nets.py:Net", *words)
            weights[words] = torch.export.load(self.folder / "net.pt2").state_dict["layer.weight"]
        self.assertTrue(torch.equal(weights[()], weights["--seed", "1"]))
        self.assertFalse(torch.equal(weights[()], weights["--seed", "2"]))

    def refused(self, *words, **options):
        path = self.folder / "net.pt2"
        path.unlink(missing_ok=True)
        text = self.export(*words, **options)
        self.assertTrue(text.startswith("stepop.eval.export: "), text)
        self.assertFalse(path.exists())
        self.assertEqual(os.listdir(self.folder).count("net.pt2.tmp"), 0)
        return text[len("stepop.eval.export: "):]

    def test_a_class_a_function_and_a_module_are_exported(self):
        for network, count in (("nets.py:Net", 8), ("nets.py:make", 16), ("nets.py:net", 20)):
            self.assertEqual(
                self.export(network),
                f"net.pt2: {count} parameters, takes x [*, 3]; largest difference to Python 0\n"
                "model: {class: Exported, path: net.pt2}\n")
        self.assertIn("28 parameters", self.export("nets.py:Net", "--kwargs", '{"width": 7}'))
        self.assertIn("takes x [*, *], y [*, *];", self.export("nets.py:Two", "--example", "y=4,3"))

    def test_no_such_file_or_name(self):
        self.assertEqual(self.refused("nowhere.py:Net"), "no such file: nowhere.py")
        self.assertEqual(self.refused("nowhere.there:Net"),
                         "no module nowhere (a file is given as my_net.py:Net); from a package: "
                         f"{sys.executable} -m pip install nowhere")
        self.assertEqual(self.refused("nets.py:Nets"),
                         "nets.py has no Nets; it has: Net, Decides, Draws, Two, make, number, net, Fixed, Counts, Asks")
        for place in ("nets.py", ":Net", "nets.py:"):
            self.assertEqual(self.refused(place),
                             f'expected "my_net.py:Net" or "package.module:Name", found "{place}"')

    def test_kwargs_that_are_no_map(self):
        for text in ("[1]", "{width: 3}", "3", ""):
            self.assertEqual(self.refused("nets.py:Net", "--kwargs", text),
                             f'--kwargs: expected a map in JSON, {{"width": 8}}, found {text}')

    def test_what_is_no_module(self):
        self.assertEqual(self.refused("nets.py:number"),
                         "nets.py:number made something of the type int: expected a torch.nn.Module")
        self.assertEqual(self.refused("nets.py:three"),
                         "nets.py:three is of the type int: expected a class, a function or a module")
        self.assertEqual(self.refused("nets.py:net", "--kwargs", '{"width": 3}'),
                         "--kwargs: nets.py:net is a module, which takes none: give its class, or a function")

    def test_code_that_fails(self):
        self.assertRegex(self.refused("nets.py:Net", "--kwargs", '{"wdth": 3}'),
                         r"^nets.py:Net cannot be made with --kwargs '{\"wdth\": 3}': TypeError: .*'wdth'(\. Did you mean 'width'\?)?$")
        (self.folder / "bad.py").write_text("import torch\nx = torch.nothing\n")
        self.assertRegex(self.refused("bad.py:Net"), r"^bad.py does not run: AttributeError: .* in bad.py, line 2$")
        (self.folder / "worse.py").write_text("import torch\nclass Net:\n  def\n")
        self.assertRegex(self.refused("worse.py:Net"), r"^worse.py does not run: SyntaxError: .*, line 3$")

    def test_examples_that_the_network_does_not_take(self):
        self.assertEqual(self.refused("nets.py:Two"),
                         "forward takes x, y, and --example gives x [4, 3]: one for each, in this order")
        self.assertEqual(self.refused("nets.py:Net", "--example", "y=4,3"),
                         "forward takes x, and --example gives x [4, 3], y [4, 3]: one for each, in this order")
        self.assertRegex(self.refused("nets.py:Net", example="x=4,5"),
                         r"^the network cannot be called with --example x \[4, 5\]: RuntimeError: .*mat1 and mat2 .* in "
                         r"nets.py, line 10$")
        self.assertRegex(self.refused("nets.py:Fixed"),
                         r"^the network takes batches of 4, and not of 5: RuntimeError: .* in nets.py, line 29$")
        self.assertEqual(self.refused("nets.py:Counts"), "forward returns int besides tensors: return tensors alone")

    def test_a_folder_that_is_not_there(self):
        self.assertEqual(self.refused("nets.py:Net", "-o", "there/net.pt2"),
                         f"-o there/net.pt2: there is no folder {self.folder / 'there'}")

    def test_sizes_that_take_too_long_to_follow_are_fixed(self):
        import torch

        programs, reason = export.export_both(torch.nn.Conv2d(2, 2, 3), [torch.zeros(2, 2, 8, 8)], seconds=1e-3)
        self.assertEqual(reason, "to follow them took PyTorch more than 0 s")
        self.assertEqual(export.free_text(programs["model"], ["image"]), "image [*, 2, 8, 8]")

    def test_an_example_that_cannot_be_read(self):
        for text in ("x", "x=", "=4,3", "x=4,a", "x=4,-3", "x=4,3:int65", "x=4,3:int64:0", "x=4,3:int64:5:6",
                     "x=4,,3"):
            self.assertEqual(
                self.refused("nets.py:Net", example=text),
                f"--example {text}: expected a name and sizes, image=4,3,224,224; with a type and a limit of the "
                "numbers: tokens=4,16:int64:1000. Types: float32, float64, float16, bfloat16, int64, int32, uint8, bool")

    def test_a_batch_of_one(self):
        self.assertEqual(self.refused("nets.py:Net", example="x=1,3"),
                         "--example: the first size is the batch and must be 2 or more, so that it stays free")

    def test_what_torch_export_cannot_export(self):
        for net, line in (("Decides", "13: .*"), ("Asks", "37: return x if is_large else -x")):
            self.assertRegex(self.refused(f"nets.py:{net}"),
                             r"^torch.export cannot export it: Could not guard on data-dependent expression .* in nets.py, line "
                             rf"{line}; forward decides by the values of a tensor, which no graph can: torch.cond, or "
                             "torch.where$")

    def test_a_graph_that_differs(self):
        text = self.refused("nets.py:Draws")
        self.assertRegex(text, r"^the graph differs from the module by [\d.e+-]+ in training: does it draw random numbers "
                               r"by other means than torch there, or depend on values of its inputs\?$")

    def test_gradients_that_the_graph_loses(self):
        functions = r"torch.export records forward alone, without the backward of the torch.autograd.Function Reversed\. "
        for network, names, parts in (
                ("Dann", "a.weight, a.bias, the input x", functions),
                ("TensorHook", "a.weight, a.bias, the input x", r".*, without register_hook in gradients.py, line 36\. "),
                ("ParameterHook", "a.weight", r".*, without a hook of the parameter a.weight\. "),
                ("ModuleHook", "a.weight, a.bias, the input x", r".*, without a backward hook of b \(Linear\)\. "),
                ("Reentrant", "a.weight, a.bias, b.weight, b.bias and 1 more",
                 "checkpointing with use_reentrant=True leaves no gradients in a graph: use_reentrant=False, ")):
            self.assertRegex(self.refused("gradients.py:" + network),
                             rf"^in training the graph has other gradients than the module for {names} \(by [\d.]+ of their "
                             rf"size\): {parts}")
        zero = self.refused("gradients.py:Dann", "--kwargs", '{"zero": true}')  # as yet it has no gradient there
        self.assertIn("other gradients than the module for a.weight, a.bias, ", zero)

    def test_gradients_that_are_the_same(self):
        for network, count in (("Detached", 26), ("Checkpointed", 26), ("Dropped", 26), ("Tied", 50)):
            self.assertEqual(self.export("gradients.py:" + network),
                             f"net.pt2: {count} parameters, takes x [*, 3]; largest difference to Python 0\n"
                             "model: {class: Exported, path: net.pt2}\n")
        self.assertIn("the backward of the torch.autograd.Function Doubled is not part of the graph; for a random loss the "
                      "gradients are the same\n", self.export("gradients.py:Same"))

    def test_complex_numbers(self):
        for words in ((), ("--kwargs", '{"as_buffer": true}')):
            self.assertRegex(self.refused("state.py:Complex", *words),
                             r"^w: complex numbers cannot be trained or saved: .*torch\.view_as_real\(x\)")
        self.assertIn("8 parameters", self.export("state.py:Complex", "--kwargs", '{"as_buffer": true, "persistent": false}'))

    def test_state_that_forward_changes(self):
        import torch

        self.assertIn("forward changes center, not persistent in Python: here checkpoints hold it", self.export("state.py:Center"))
        self.assertEqual(list(torch.export.load(self.folder / "net.pt2").state_dict),
                         ["layer.weight", "layer.bias", "center"])
        self.assertIn("\nforward changes inner.calls, a number of Python's: the graph keeps the value of the export; ",
                      self.export("state.py:Calls"))
        self.assertIn("largest difference to Python 0\nmodel:", self.export("state.py:Writes"))

    def test_state_that_is_stored_with_the_other_sign(self):
        import torch

        self.export("state.py:Negated")
        found = torch.export.load(self.folder / "net.pt2").module()(torch.zeros(2, 3))
        self.assertEqual(found.tolist(), [[-16.0, -20.0, -24.0]] * 2)

    def test_results_that_the_file_cannot_hold(self):
        self.assertEqual(self.refused("state.py:Named"),
                         "forward returns a Pair in training, a namedtuple, which the file cannot hold: return a plain tuple "
                         "of its tensors")
        self.assertEqual(self.refused("state.py:Auxiliary"),
                         "forward returns 2 tensors in training and 1 in evaluation: return the same ones in both, also "
                         "those of an auxiliary head")

    def test_arguments_of_any_number_sequences_and_operators_of_packages(self):
        self.assertIn("takes x [*, 3], y [*, 2];", self.export("state.py:Starred", "--example", "y=4,2"))
        self.assertIn("takes x [*, *, 4];", self.export("state.py:Attention", example="x=4,7,4"))
        self.assertIn("\nit calls mine.doubled.default, of a package: ", self.export("state.py:Custom"))

    def test_the_sizes_that_are_free_can_be_chosen(self):
        self.assertIn("takes x [*, 7, 4];", self.export("state.py:Attention", "--free", "x=0", example="x=4,7,4"))
        self.assertIn("takes x [*, *, 4];", self.export("state.py:Attention", "--free", "x=1", example="x=4,7,4"))
        self.assertEqual(
            self.refused("state.py:Attention", "--free", "x=2", example="x=4,7,4"),
            "--free x=2: forward holds for 4 there alone: a size that becomes a number of Python (len, int, NumPy), or a "
            "layer of one size")
        for text in ("y=1", "x", "x=", "x=3", "x=a", "x=1,"):
            self.assertEqual(
                self.refused("state.py:Attention", "--free", text, example="x=4,7,4"),
                f"--free {text}: expected an input and places of its sizes, image=0,2,3; there are x of 3 sizes, 0 to 2")

    def test_sizes_for_which_the_graph_does_not_hold(self):
        self.assertRegex(self.refused("state.py:Length"),
                         r"^the graph of the training does not take \[5, 3\], which the module takes: Guard failed: "
                         r"x.size\(\)\[0\] == 4; .*x.shape\[0\].* keep it free$")
        self.assertIn("\na batch of one example is computed otherwise than by the module, in training by ",
                      self.export("state.py:Single"))
        self.assertIn("\nit holds for x.size()[1] <= 40\n", self.export("state.py:Narrow", example="x=4,20"))

    def test_limits_of_quotients_are_said_as_sizes(self):
        self.assertNotIn("it holds for", self.export("state.py:Groups", example="x=4,3,32,32"))
        self.assertIn("\nit holds for x.size()[2] <= 79\n", self.export("state.py:Halves", example="x=4,3,32,32"))


if __name__ == "__main__":
    unittest.main()
