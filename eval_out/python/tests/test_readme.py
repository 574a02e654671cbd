import doctest
import importlib.util
import re
import unittest

from tests import files


class ReadmeTest(unittest.TestCase):
    def test_its_lines_do_what_it_says(self):
        text = (files.PACKAGE / "README.md").read_text(encoding="utf-8")
        if importlib.util.find_spec("pandas") is None:
            # Those that need it, with what they print.
            text = re.sub(r">>> [^\n]*to_pandas.*\n(?!>>>)(?:[^>\n][^\n]*\n)*", "", text)
        test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
        self.assertGreater(len(test.examples), 30)
        told = []
        runner = doctest.DocTestRunner(verbose=False)
        with files.inside(files.root()):
            runner.run(test, out=told.append)
        self.assertEqual("".join(told), "")
