"""A training that reads shards from an object store, copies its run there, and continues on another machine.

The store is moto's server of S3's protocol. Where it and the aws command are installed: pip install 'moto[server]' awscli
"""
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

from tests import files

CONFIG = """
include: [DIGITS]
datasets:
  train: !replace
    class: TarShards
    urls: s3://bucket/train/shard-{000000..000001}.tar
    pipe: aws s3 cp {url} -
    examples: 1442
    shuffle: {buffer: 300}
hooks:
  copy:
    class: RunCommand
    on: checkpoint
    tries: 1
    command: >-
      up() { aws s3 sync {folder} s3://bucket/runs/{run} --no-follow-symlinks --exclude '*.tmp' --exclude '*.part'
      --only-show-errors "$@"; }; up && up --delete
ckpt_freq: 10
checkpoints: {keep_last: 2}
"""
# The lines of runtime/train/hooks/README.md.
JOB = """
ls -d logs/*_job >/dev/null 2>&1 || aws s3 sync s3://bucket/runs fetched --exclude '*' --include '*_job/*' || exit 1
mkdir -p logs fetched && find fetched -mindepth 1 -maxdepth 1 -exec mv -t logs {} + || exit 1
exec "$STEPOP" -n job -b job.yaml -t --resume
"""


@unittest.skipUnless(importlib.util.find_spec("moto") and shutil.which("aws"), "moto or the aws command is not installed")
class ObjectStoreTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        self.serve("0")
        port = re.search(r"http://127\.0\.0\.1:(\d+)", self.said(r"Running on http://127\.0\.0\.1:\d+")).group(1)
        self.port = port
        self.environment = {
            **os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true"}
        self.shell("aws s3 mb s3://bucket")

    def serve(self, port):
        with open(self.folder / "store.txt", "w") as output:
            self.store = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port],
                                          stdout=output, stderr=output)
        self.addCleanup(self.store.wait)
        self.addCleanup(self.store.kill)

    def said(self, pattern):
        self.until(lambda: re.search(pattern, (self.folder / "store.txt").read_text()))
        return (self.folder / "store.txt").read_text()

    def until(self, condition):
        end = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not come within two minutes")
            time.sleep(0.1)

    def shell(self, line, folder="."):
        return files.call("sh", "-c", line, cwd=self.folder / folder, env=self.environment)

    def machine(self, name, config):
        (self.folder / name).mkdir()
        (self.folder / name / "job.yaml").write_text(config.replace("DIGITS", str(files.TREE / "tests" / "data" / "digits.yaml")))
        (self.folder / name / "job.sh").write_text(JOB)
        return self.folder / name

    def start(self, machine, *more):
        output = open(machine / "out.txt", "a")
        self.addCleanup(output.close)
        training = subprocess.Popen(["sh", "job.sh"] if not more else more, cwd=machine, env=self.environment,
                                    stdout=output, stderr=output)
        self.addCleanup(training.wait)
        self.addCleanup(training.kill)
        return training

    def in_store(self):
        listed = subprocess.run(["aws", "s3", "ls", "--recursive", "s3://bucket/runs/"], env=self.environment,
                                capture_output=True, text=True).stdout
        return [line.split(maxsplit=3)[3] for line in listed.splitlines()]

    def steps_in_store(self):
        return sorted(int(step) for step in re.findall(r"checkpoints/model-(\d+)\.", "\n".join(self.in_store())))

    def test_a_killed_training_continues_on_another_machine_with_the_same_bits(self):
        shards = files.TREE / "runtime" / "data" / "streams" / "make_shards.py"
        data = files.TREE / "configs" / "data"
        files.call(sys.executable, shards, "--idx", data / "digits-train-images.idx.gz", data / "digits-train-labels.idx.gz",
                   self.folder / "train", "--examples", "800")
        self.shell("aws s3 sync train s3://bucket/train")

        first = self.machine("first", CONFIG)
        training = self.start(first)
        self.until(lambda: len(self.steps_in_store()) > 1 or training.poll() is not None)
        self.assertIsNone(training.poll(), (first / "out.txt").read_text())
        training.send_signal(signal.SIGKILL)
        training.wait()
        time.sleep(2)  # a copy that has begun may end
        copied = self.steps_in_store()
        shutil.rmtree(first / "logs")

        # One command.
        steps = copied[-1] + 20
        second = self.machine("second", CONFIG + f"num_steps: {steps}\n")
        run = self.in_store()[0].split("/")[1]
        said = self.shell(f"aws s3 sync s3://bucket/runs/{run} logs/{run} --only-show-errors && "
                          f"$STEPOP -p logs/{run} -t --num_steps {steps}", "second")
        self.assertIn(f"\nresuming at step {copied[-1]} of {steps} ", said)

        # The store now has all that the end left, and no more.
        here = second / "logs" / run
        names = {str(path.relative_to(second / "logs")) for path in here.rglob("*") if path.is_file() and not path.is_symlink()}
        self.assertEqual({name.removeprefix("runs/") for name in self.in_store()}, names)
        self.shell(f"aws s3 cp s3://bucket/runs/{run}/train/metrics.jsonl copy.jsonl")
        self.assertEqual((self.folder / "copy.jsonl").read_bytes(), (here / "train" / "metrics.jsonl").read_bytes())

        # The same bits as without a store and a kill.
        import stepop
        self.machine("whole", CONFIG.replace("aws s3 cp {url} -", "cat {url}").replace("s3://bucket", str(self.folder))
                     + f"num_steps: {steps}\n")
        self.shell("$STEPOP -n job -b job.yaml -t --hooks null", "whole")
        whole = stepop.Run(next((self.folder / "whole" / "logs").iterdir()))
        self.assertEqual(whole.checkpoints[-1].step, steps)
        weights = stepop.Run(here).weights()
        self.assertTrue(weights)
        for name, value in whole.weights().items():
            np.testing.assert_array_equal(weights[name], value, name)

        # The script of a job: it fetches the run where there is none, and finds it done.
        third = self.machine("third", CONFIG + f"num_steps: {steps}\n")
        self.assertEqual(self.start(third).wait(), 0, (third / "out.txt").read_text())
        self.assertIn(f"all {steps} steps were done before", (third / "out.txt").read_text())
        self.assertEqual([path.name for path in (third / "logs").iterdir()], [run])
        # Without the store it begins no second run of the name.
        self.store.kill()
        self.store.wait()
        fourth = self.machine("fourth", CONFIG)
        self.assertEqual(self.start(fourth).wait(), 1)
        self.assertFalse((fourth / "logs").exists())

    def test_a_store_that_is_away_does_not_stop_a_training_and_gets_all_when_it_is_back(self):
        self.store.kill()
        self.store.wait()
        machine = self.machine("first", re.sub(r"(?s)datasets:.*?hooks", "hooks", CONFIG) + "num_steps: 1000000\n")
        training = self.start(machine, os.environ["STEPOP"], "-n", "job", "-b", "job.yaml", "-t")
        said = lambda: (machine / "out.txt").read_text()
        run = lambda: next((machine / "logs").iterdir())
        newest = lambda: max((int(path.stem[6:]) for path in run().glob("train/checkpoints/model-*.safetensors")), default=0)
        self.until(lambda: "it has not worked since the start" in said())
        step = newest()
        self.until(lambda: newest() > step)  # it trains on
        self.serve(self.port)
        self.said("Running on")
        self.shell("aws s3 mb s3://bucket")
        self.until(lambda: "RunCommand: the command works again" in said())
        training.terminate()
        self.assertEqual(training.wait(), 128 + signal.SIGTERM)
        self.assertEqual(said().count("warning: RunCommand: "), 1)
        self.assertEqual(self.steps_in_store()[-1], newest())


if __name__ == "__main__":
    unittest.main()
