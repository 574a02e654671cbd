import os
import subprocess
import sys
import unittest
import unittest.mock

import stepop.eval
from tests import files
from tests.test_evaluation import message_of

WRITER = files.TREE / "tests" / "eval_out" / "hostile_files.py"


class HostileTest(unittest.TestCase):
    """Files that are made to harm their reader; the C++ reader has the same tests."""

    def message(self, kind):
        path = files.scratch() / "outputs.h5"
        subprocess.run([sys.executable, WRITER, kind, path], check=True)
        message = message_of(lambda: stepop.eval.open(path))
        self.assertTrue(message.startswith(f"{path}: "), message)
        return message[len(f"{path}: ") :]

    def test_groups_with_two_names(self):
        again = " is a group that is there under another name already; in a file of outputs each has one"
        self.assertEqual(self.message("cycle"), "outputs/self" + again)
        self.assertTrue(self.message("doubling").endswith(again))

    def test_deep_groups(self):
        self.assertIn("groups lie more than 64 deep in one another", self.message("deep"))

    def test_links_and_other_files(self):
        for kind, start in (
            ("external_link", "outputs/link is a link to another file, which is not followed; "),
            ("external_index", "index is a link to another file, which is not followed; "),
            ("soft_link", "outputs/link is a link to another name, which is not followed; "),
            ("external_storage", "outputs/raw has its numbers in another file: "),
            ("virtual", "outputs/virtual is a virtual dataset, put together from other files: "),
        ):
            with self.subTest(kind=kind):
                self.assertTrue(self.message(kind).startswith(start))

    def test_what_arrays_claim(self):
        for kind in ("bomb", "big_chunk", "claim31", "claim60"):
            with self.subTest(kind=kind):
                self.assertIn("it is damaged, or made to fill the memory", self.message(kind))

    def test_the_limit_can_be_raised(self):
        limit = self.message("bomb").split("STEPOP_UNPACK_LIMIT=")[1].split(" ")[0]
        path = files.scratch() / "outputs.h5"
        subprocess.run([sys.executable, WRITER, "bomb", path], check=True)
        with unittest.mock.patch.dict(os.environ, {"STEPOP_UNPACK_LIMIT": limit}):
            stepop.eval.open(path).close()
        with unittest.mock.patch.dict(os.environ, {"STEPOP_UNPACK_LIMIT": "lots"}):
            self.assertEqual(
                message_of(lambda: stepop.eval.open(path)),
                'STEPOP_UNPACK_LIMIT: expected a number of bytes such as 20e9, found "lots"',
            )
