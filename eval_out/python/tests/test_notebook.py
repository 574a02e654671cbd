import importlib.util
import os
import unittest
from unittest import mock

from tests import files

NOTEBOOK = files.PACKAGE / "tour.ipynb"


class NotebookTest(unittest.TestCase):
    # ctest names the build; its environment has what tests/requirements.txt lists.
    @unittest.skipIf(
        importlib.util.find_spec("nbclient") is None and "STEPOP_BUILD" not in os.environ,
        "nbclient and ipykernel are not installed",
    )
    def test_its_cells_run_one_after_the_other(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.assertGreater(len(code), 8)
        for cell in code:
            self.assertEqual((cell.outputs, cell.execution_count), ([], None), "clear its outputs")
        folder = files.scratch()
        (folder / "configs").symlink_to(files.TREE / "configs")
        (folder / "eval_out" / "python").mkdir(parents=True)
        (folder / "tmp").mkdir()
        variables = {
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(folder / "jupyter"),
            "PYTHONPATH": str(files.PACKAGE),
            **files.BYTECODE_IN_BUILD,
            "TMPDIR": str(folder / "tmp"),
        }
        resources = {"metadata": {"path": str(folder / "eval_out" / "python")}}
        with mock.patch.dict(os.environ, variables):
            nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
        shown = [output.get("data", {}) for cell in code for output in cell.outputs]
        pages = "".join(data.get("text/html", "") for data in shown)
        self.assertIn("<svg", pages)  # run
        self.assertIn("data:image/png;base64,", pages)  # run.images
        self.assertIn("optimizer/lr", pages)  # sweep
        self.assertIn("(6, 1, 5, 5)", [data.get("text/plain") for data in shown])
