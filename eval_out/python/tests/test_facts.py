import os
import subprocess
import unittest
from unittest import mock

import stepop
from tests import files

# A program whose messages are other ones than those of stepop.
OTHER = """#!/bin/sh
echo "now in the folder of $1" >&2
mkdir -p logs/a/train
test -z "$FAILS" || { echo '{"error": "it is broken"}'; echo "oh no" >&2; exit 1; }
echo '{"run": "logs/a"}'
echo '{"file": "net.pt"}'
echo '{"ended": "done"}'
"""


class FactsTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        stack = files.inside(self.folder)
        stack.__enter__()
        self.addCleanup(stack.__exit__, None, None, None)

    def test_the_messages_of_the_program_may_change(self):
        program = self.folder / "stepop"
        program.write_text(OTHER)
        program.chmod(0o755)
        with mock.patch.dict(os.environ, STEPOP=str(program)):
            run = stepop.train("x.yaml", quiet=True)
            self.assertEqual(run.path, self.folder / "logs" / "a")
            self.assertEqual(str(stepop.export(run, quiet=True)), "net.pt")
            self.assertEqual(str(stepop.tune("x.yaml", quiet=True)), "net.pt")
            os.environ["FAILS"] = "1"
            with self.assertRaisesRegex(stepop.StepopError, "^it is broken$"):
                stepop.train("x.yaml", quiet=True)

    def test_a_start_says_its_facts_and_nothing_else_on_the_standard_output(self):
        words = ["-b", files.TREE / "configs" / "digits.yaml", "-t", "--num_epochs", "1", "-n", "a"]
        done = subprocess.run(
            [files.BUILD / "stepop", *words, "--json"], capture_output=True, text=True
        )
        (name,) = os.listdir("logs")
        outputs = f"logs/{name}/eval/{name}/23/outputs.h5"
        self.assertEqual(
            done.stdout,
            f'{{"run": "logs/{name}"}}\n{{"outputs": "{outputs}"}}\n{{"ended": "done"}}\n',
        )
        self.assertIn("ended: all 23 steps are done\n", done.stderr)
        self.assertNotIn("--json", stepop.Run(f"logs/{name}").starts[0].command)
