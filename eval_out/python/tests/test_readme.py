import doctest
import importlib.util
import re
import shutil
import unittest

from tests import files


class ReadmeTest(unittest.TestCase):
    def run_lines(self, text, folder, fewest):
        test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
        self.assertGreater(len(test.examples), fewest)
        told = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        with files.inside(folder):
            runner.run(test, out=told.append)
        self.assertEqual("".join(told), "")

    def test_its_lines_do_what_it_says(self):
        text = (files.PACKAGE / "README.md").read_text(encoding="utf-8")
        runs, evaluations = text.split("\n## stepop.eval")
        has_pandas = importlib.util.find_spec("pandas") is not None
        if has_pandas:
            # Their runs are in a folder of their own, with the one of the others.
            folder = files.scratch()
            shutil.copytree(files.root(), folder, symlinks=True, dirs_exist_ok=True)
            (folder / "configs").symlink_to(files.TREE / "configs")
            self.run_lines(runs, folder, fewest=10)
        else:
            # Those that need it, with what they print.
            evaluations = re.sub(r">>> [^\n]*to_pandas.*\n(?!>>>)(?:[^>\n][^\n]*\n)*", "", evaluations)
        self.run_lines(evaluations, files.root(), fewest=30)
