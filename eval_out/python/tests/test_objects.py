import difflib
import importlib
import os
import sys
import unittest
from unittest import mock

from stepop.eval.export_check import CannotExport
from stepop.eval.export_source import find
from stepop.eval.metric import Refused, find_metric
from tests import files

FILE = "class Net:\n    def compute(self): pass\n    class Inner:\n        def compute(self): pass\n"


class RefusedByScript(Exception):
    pass


def of_script(place):
    """What the script of the program finds, which has no package."""
    source = (files.TREE / "runtime/data/python/script/building.py").read_text()
    names = dict(os=os, sys=sys, importlib=importlib, difflib=difflib, Refused=RefusedByScript)
    exec(compile(source, "building.py", "exec"), names)
    return names["find_object"](place, "object")


class ObjectsTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        (self.folder / "my_package").mkdir()
        (self.folder / "my_net.py").write_text(FILE)
        (self.folder / "my_package/__init__.py").write_text("")
        (self.folder / "my_package/nets.py").write_text(FILE)
        stack = files.inside(self.folder)
        stack.__enter__()
        self.addCleanup(stack.__exit__, None, None, None)
        for patched in (mock.patch.object(sys, "path", [str(self.folder), *sys.path]),
                        mock.patch.dict(sys.modules)):  # fmt: skip
            patched.start()
            self.addCleanup(patched.stop)

    def test_all_readers_find_the_same_objects(self):
        for place in (
            "my_net.py:Net", "my_net.py:Net.Inner", f"{self.folder}/my_net.py:Net",
            "my_package.nets:Net", "my_package.nets:Net.Inner", "my_package.nets.Net",
        ):  # fmt: skip
            with self.subTest(place):
                found = [one(place) for one in (of_script, find, find_metric)]
                name = place.partition("Net")
                for one in found:
                    self.assertEqual(one.__qualname__, name[1] + name[2])

    def test_all_readers_refuse_the_same_texts(self):
        for place in (
            "", "Net", ":Net", "my_net.py", "my_net.py:", "my_net.py:Net.Outer", "my_package.nets:Nets",
            "no_package.nets:Net",
        ):  # fmt: skip
            for reader, kind in (
                (of_script, RefusedByScript), (find, CannotExport), (find_metric, Refused),
            ):  # fmt: skip
                with self.subTest(place, reader=reader), self.assertRaises(kind):
                    reader(place)
