"""LeNet's steps in whole programs side by side: as they are, on one processor, under a quota, crowded, from JPEGs.

    .venv/bin/python tests/bench/side_by_side.py [--rounds 5] [--seconds 2] [CONDITION ...]

The programs train one after the other, in rounds: stepop; the loop by hand with LibTorch (`stepop_bench_by_hand`), with the
malloc of the system and with ours; PyTorch with Adam(fused=True) and, where STEPOP_BENCH_PYTHON names a Python that has it,
JAX. Each cell has the median of steps a second, in brackets how many times as fast stepop is: the median over the rounds. A
quota needs a control group that may be made (root).
"""

import argparse
import contextlib
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
BUILD = HERE.parents[1] / "build"
PYTHON = os.environ.get("STEPOP_BENCH_PYTHON", sys.executable)
LOOPS = HERE / "framework_loops.py"
BATCHES = (1, 4, 64)
OPTIMIZERS = {"adam": "{class: Adam, lr: 1e-3}", "sgd": "{class: SGD, lr: 1e-3, momentum: 0.9}"}
NEW_PROCESS = {}  # of subprocess, in the condition that is measured


def our_malloc():
    libraries = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in libraries.splitlines() if "libtcmalloc_minimal.so.4" in line)


def optimizer():
    """Of stepop and of the loop by hand, which reads this variable too."""
    return os.environ.get("STEPOP_BENCH_OPTIMIZER", "adam")


class Stepop:
    """A whole training; its steps a second are those behind the first tenth."""

    def __init__(self, data, batch, steps=200):
        self.data, self.batch, self.steps, self.first_steps = data, batch, steps, steps

    def rate(self, seconds):
        rate = self.train()
        if self.steps == self.first_steps:
            self.steps = max(self.steps, int(seconds * rate))
            rate = self.train()
        return rate

    def train(self):
        with tempfile.TemporaryDirectory() as logs:
            config = pathlib.Path(logs, "lenet.yaml")
            config.write_text(f"iterator: Classifier\nmodel: LeNet\noptimizer: {OPTIMIZERS[optimizer()]}\nlog_ops: []\n"
                              f"datasets: {{train: {self.data}}}\nbatch_size: {self.batch}\nnum_steps: {self.steps}\n"
                              f"log_freq: {max(1, self.steps // 10)}\n")
            subprocess.run([BUILD / "stepop", "-n", "a", "-b", config, "-t", "--logs", logs], check=True,
                           stdout=subprocess.DEVNULL, **NEW_PROCESS)
            lines = [json.loads(line) for line in open(glob.glob(f"{logs}/*/train/metrics.jsonl")[0])]
        first, last = (next(line for line in each if line.get("step", 0) >= self.steps // 10) for each in (lines, lines[::-1]))
        return (last["step"] - first["step"]) / (last["time"] - first["time"])


class Loop:
    """A program that answers a number of steps with the seconds that they took."""

    def __init__(self, command, question, environment=None, steps=200):
        self.question, self.steps, self.first_steps = question, 0, steps
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})}, **NEW_PROCESS)
        self.ask(steps // 10)

    def ask(self, steps):
        print(self.question.format(steps), file=self.process.stdin, flush=True)
        return steps / float(self.process.stdout.readline())

    def rate(self, seconds):
        self.steps = self.steps or max(20, int(seconds * self.ask(self.first_steps)))
        return self.ask(self.steps)


def programs(folder, batch):
    by_hand = [BUILD / "stepop_bench_by_hand", folder]
    threads = os.environ.get("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    found = {
        "stepop": Stepop(f"{{class: Idx, images: {folder}/images.idx, labels: {folder}/labels.idx}}", batch),
        "by hand, our malloc": Loop(by_hand, f"{batch} {{}}", {"LD_PRELOAD": our_malloc()}),
        "by hand": Loop(by_hand, f"{batch} {{}}"),
    }
    if optimizer() != "adam":
        return found
    found |= {
        "PyTorch, fused": Loop([PYTHON, "-B", LOOPS, "fused", folder, batch, threads], "{}"),
    }
    kinds = subprocess.run([PYTHON, "-B", LOOPS, "kinds"], capture_output=True, text=True, check=True).stdout
    if "jax 0" in kinds:
        found["JAX, jit"] = Loop([PYTHON, "-B", LOOPS, "jax", folder, batch, threads], "{}")
    return found


def programs_of_jpegs(folder, batch):
    """Each step decodes its images, of about 256x256, and resizes them."""
    threads = str(len(os.sched_getaffinity(0)))
    return {
        "stepop": Stepop(f"{{class: ImageFolder, path: {folder}/jpegs, channels: 1, size: [28, 28]}}", batch, 40),
        "PyTorch, fused": Loop([PYTHON, "-B", LOOPS, "jpegs", folder, batch, threads], "{}", steps=40),
    }


@contextlib.contextmanager
def in_condition(name):
    """What is started within it is started so."""
    cleanup = contextlib.ExitStack()
    with cleanup:
        if name.endswith("thread") or name.endswith("threads"):
            os.environ["OMP_NUM_THREADS"] = "1" if name.endswith("one thread") else "2"
            cleanup.callback(os.environ.pop, "OMP_NUM_THREADS")
        if name.startswith("SGD"):
            os.environ["STEPOP_BENCH_OPTIMIZER"] = "sgd"
            cleanup.callback(os.environ.pop, "STEPOP_BENCH_OPTIMIZER")
        if name in ("one processor", JPEGS):
            own = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {min(own)})
            cleanup.callback(os.sched_setaffinity, 0, own)
        if name == "quota of one processor":
            group, members = quota_group()
            NEW_PROCESS["preexec_fn"] = lambda: members.write_text(str(os.getpid()))
            cleanup.callback(remove, group)
            cleanup.callback(NEW_PROCESS.clear)
        if name == "crowded":
            for processor in os.sched_getaffinity(0):
                busy = subprocess.Popen(["taskset", "-c", str(processor), sys.executable, "-c", "while True: pass"])
                cleanup.callback(busy.kill)
        yield


def quota_group():
    root = pathlib.Path("/sys/fs/cgroup")
    is_v2 = (root / "cgroup.controllers").exists()
    group = (root if is_v2 else root / "cpu") / "stepop-bench"
    group.mkdir(exist_ok=True)
    if is_v2:
        (root / "cgroup.subtree_control").write_text("+cpu")
        (group / "cpu.max").write_text("100000 100000")
        return group, group / "cgroup.procs"
    (group / "cpu.cfs_quota_us").write_text("100000")
    return group, group / "tasks"


def remove(group):
    for _ in range(50):  # its processes are ending
        with contextlib.suppress(OSError):
            return group.rmdir()
        time.sleep(0.1)


JPEGS = "one processor, JPEGs"
CONDITIONS = ["one thread", "two threads", "SGD, one thread", "SGD, two threads", "one processor", "quota of one processor",
              "crowded", JPEGS]


def measure(condition, folder, arguments):
    for batch in BATCHES if condition != JPEGS else BATCHES[-1:]:
        with in_condition(condition):
            found = (programs_of_jpegs if condition == JPEGS else programs)(folder, batch)
            rates = {name: [] for name in found}
            try:
                for _ in range(arguments.rounds):
                    for name, program in found.items():
                        rates[name].append(program.rate(arguments.seconds))
            finally:
                for program in found.values():
                    if isinstance(program, Loop):
                        program.process.kill()
                        program.process.wait()
        if not arguments.columns:
            arguments.columns = list(rates)
            print("| | batch | " + " | ".join(rates) + " |\n" + "|---" * (2 + len(rates)) + "|")
        cells = []
        for name in arguments.columns:
            if name not in rates:
                cells.append("")
                continue
            ratio = statistics.median(ours / other for ours, other in zip(rates["stepop"], rates[name]))
            cells.append(f"{statistics.median(rates[name]):,.0f}" + ("" if name == "stepop" else f" ({ratio:.2f})"))
        print(f"| {condition} | {batch} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each portion")
    parser.add_argument("conditions", nargs="*", metavar="CONDITION", help=", ".join(CONDITIONS))
    arguments = parser.parse_args()
    arguments.conditions, arguments.columns = arguments.conditions or CONDITIONS, []
    unknown = set(arguments.conditions) - set(CONDITIONS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(CONDITIONS)}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PYTHON, "-B", LOOPS, "data", folder], check=True)
        if JPEGS in arguments.conditions:
            subprocess.run([PYTHON, "-B", LOOPS, "write_jpegs", folder], check=True)
        for condition in arguments.conditions:
            measure(condition, folder, arguments)


if __name__ == "__main__":
    main()
