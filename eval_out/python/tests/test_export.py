"""What python -m stepop_eval.export writes, and what it refuses, by whole messages."""

import contextlib
import io
import os
import sys
import unittest

from stepop_eval import export
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
'''


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = files.scratch()
        (cls.folder / "nets.py").write_text(NETS)
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

    def refused(self, *words, **options):
        path = self.folder / "net.pt2"
        path.unlink(missing_ok=True)
        text = self.export(*words, **options)
        self.assertTrue(text.startswith("stepop_eval.export: "), text)
        self.assertFalse(path.exists())
        self.assertEqual(os.listdir(self.folder).count("net.pt2.tmp"), 0)
        return text[len("stepop_eval.export: "):]

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
                         f"no module nowhere: {sys.executable} -m pip install nowhere")
        self.assertTrue(self.refused("nets.py:Nets").startswith("nets.py has no Nets; it has: "))
        for place in ("nets.py", ":Net", "nets.py:"):
            self.assertEqual(self.refused(place),
                             f'expected "my_net.py:Net" or "package.module:Name", found "{place}"')

    def test_kwargs_that_are_no_map(self):
        for text in ("[1]", "{width: 3}", "3", ""):
            self.assertEqual(self.refused("nets.py:Net", "--kwargs", text),
                             f'--kwargs: expected a map in JSON, {{"width": 8}}, found {text}')

    def test_what_is_no_module(self):
        self.assertEqual(self.refused("nets.py:number"), "nets.py:number made a int, not a torch.nn.Module")

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
        for network, example, part in (("Decides", "x=4,3", "data-dependent"), ("Net", "x=4,5", "[3, 2]")):
            text = self.refused(f"nets.py:{network}", example=example)
            self.assertTrue(text.startswith("torch.export cannot export it: "), text)
            self.assertIn(part, text)
            self.assertFalse(text.endswith("\n"))

    def test_a_graph_that_differs(self):
        text = self.refused("nets.py:Draws")
        self.assertRegex(text, r"^the graph differs from the module by [\d.e+-]+: does it draw random numbers in its "
                               r"evaluation, or depend on values of its inputs\?$")


if __name__ == "__main__":
    unittest.main()
