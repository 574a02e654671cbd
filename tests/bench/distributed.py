#!/usr/bin/env python3
"""Steps of several processes, and what to expect of many: `tests/bench/distributed.py [--quick]`.

Measures, in turns and in one run, training steps of two processes with a thread each, free and bound to a core
each, against one process with two threads, for LeNet at batch 64 and VUNet of 64x64 at batch 8; then c10d's all-reduce by Gloo between two
processes of this machine. Prints both, and from them a table of how 8, 64 and 512 processes scale: README.md
says by which model. `--quick` takes a few steps, to see that it runs.

To be run with the tree's Python (`.venv/bin/python`), which has torch; the program is build/stepop.
"""
import glob
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = {
    "LeNet, 28x28": {
        "batch": 64, "steps": 800,
        "config": {"iterator": "Classifier", "model": "LeNet", "optimizer": {"class": "Adam", "lr": 1e-3},
                   "datasets": {"train": {"class": "Synthetic", "size": 600000}}}},
    "VUNet, 64x64": {
        "batch": 8, "steps": 40,
        "config": {"iterator": "VUNetIterator",
                   "model": {"class": "VUNet", "spatial_size": 64, "nf_start": 16, "nf_max": 32},
                   "losses": {"color_L1": {"weight": 10}, "KL": {"weight": 1e-4}},
                   "optimizer": {"class": "Adam", "lr": 1e-4},
                   "datasets": {"train": {"class": "Figures", "size": 64, "examples": 60000}}}},
}
WAYS = {"one process, 2 threads": ["--num_threads", "2"],
        "two processes, 1 thread each": ["--num_threads", "1", "--processes", "2"],
        "the same, bound": ["--num_threads", "1", "--processes", "2", "--distributed/bind", "true"],
        "one process, 1 thread": ["--num_threads", "1"]}
# Links between machines: bits per second, seconds from one process to the next through TCP.
LINKS = {"10 Gbit/s": (10e9, 25e-6), "100 Gbit/s": (100e9, 10e-6)}
PROCESSES = [8, 64, 512]
BACKWARD = 2 / 3  # of a step
FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # bytes, as in runtime/train/distributed/gradient_sum.cpp
SMALL, LARGE = 64, 32 << 20  # bytes of the all-reduces that are measured


def train(case, way, steps):
    """Seconds of a step, and the number of parameters. As many steps before are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        config = dict(case["config"], batch_size=case["batch"], num_steps=2 * steps,
                      log_ops=[{"op": "train/log_op", "when": {"every": steps}}])
        path = os.path.join(folder, "bench.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        done = subprocess.run([os.path.join(TREE, "build/stepop"), "-n", "bench", "-b", path, "-t", *WAYS[way]],
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{way}:\n{done.stdout}")
        with open(glob.glob(os.path.join(folder, "logs/*/train/metrics.jsonl"))[0], encoding="utf-8") as file:
            times = {line["step"]: line["time"] for line in map(json.loads, file) if "time" in line}
        parameters = re.search(r"([\d,]+) parameters", done.stdout).group(1)
        return (times[2 * steps] - times[steps]) / steps, int(parameters.replace(",", ""))


def measure_steps(quick):
    """By case: the seconds of a step each way, and the bytes of its gradients."""
    found = {}
    for name, case in CASES.items():
        steps = max(5, case["steps"] // 20) if quick else case["steps"]
        seconds = {way: [] for way in WAYS}
        for _ in range(2 if quick else 5):
            for way in WAYS:
                took, parameters = train(case, way, steps)
                seconds[way].append(took)
        one, two, bound = list(WAYS)[:3]
        ratio, ratio_bound = (statistics.median(a / b for a, b in zip(seconds[one], seconds[way])) for way in (two, bound))
        medians = {way: statistics.median(times) for way, times in seconds.items()}
        rates = "; ".join(f"{way} {1 / medians[way]:,.1f} steps/s" for way in WAYS)
        print(f"{name}, batch {case['batch']}: {rates}; two processes / two threads {ratio:.2f}, "
              f"bound {ratio_bound:.2f}", flush=True)
        found[name] = (medians["one process, 1 thread"], 4 * parameters)
    return found


def all_reduce_child(repeats):
    """Prints the seconds of a small and of a large all-reduce, in rank 0."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    medians = []
    for size, count in ((SMALL, 50 * repeats), (LARGE, repeats)):
        tensor = torch.zeros(size // 4)
        times = []
        for _ in range(count):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(tensor)
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    if dist.get_rank() == 0:
        print(*medians)
    dist.destroy_process_group()


def measure_all_reduce(quick):
    """Seconds of a message, and bytes per second, without a network between."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--all-reduce", "3" if quick else "30"],
        env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)),
        stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    output = [child.communicate()[0] for child in children][0]
    if any(child.returncode for child in children):
        sys.exit("the all-reduce failed")
    small, large = map(float, output.split())
    # A ring of two: two messages, and each process sends as many bytes as the tensor has.
    latency, bandwidth = small / 2, LARGE / max(large - small, 1e-9)
    print(f"all-reduce of two processes: {SMALL} bytes {small * 1e6:.0f} us, {LARGE >> 20} MiB "
          f"{large * 1e3:.1f} ms: {latency * 1e6:.0f} us a message, {bandwidth / 1e9:.2f} GB/s", flush=True)
    return latency, bandwidth


def ring(count, size, processes, latency, bandwidth):
    """Seconds of `count` all-reduces, which have `size` bytes together."""
    messages = 2 * (processes - 1)
    return count * messages * latency + messages / processes * size / bandwidth


def scaling(step, gradients, processes, own, link):
    """The part of its time in which a process computes: nothing overlaps; all that can does."""
    bits, link_latency = link
    latency, bandwidth = own[0] + link_latency, min(own[1], bits / 8)
    buckets = 1 + max(0, -(-(gradients - FIRST_BUCKET) // BUCKET))
    count = 1 if buckets == 1 else buckets + 1  # and which parameters were used
    sums = ring(count, gradients, processes, latency, bandwidth)
    agreement = ring(1, SMALL, processes, latency, bandwidth) / 2  # gathered
    hidden = 0 if buckets == 1 else min(sums, BACKWARD * step)
    return step / (step + sums + agreement), step / (step + sums - hidden + agreement)


def print_table(steps, own):
    print("\n| model, of each process | a step | gradients | link | "
          + " | ".join(f"{n} processes" for n in PROCESSES) + " |")
    print("|---" * (4 + len(PROCESSES)) + "|")
    for name, (step, gradients) in steps.items():
        for link_name, link in LINKS.items():
            cells = []
            for processes in PROCESSES:
                least, most = scaling(step, gradients, processes, own, link)
                cells.append(f"{100 * least:.0f} %" if least == most else f"{100 * least:.0f} to {100 * most:.0f} %")
            print(f"| {name}, batch {CASES[name]['batch']} | {step * 1e3:.1f} ms | {gradients / 1e6:.2f} MB | "
                  f"{link_name} | " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:2] == ["--all-reduce"]:
        return all_reduce_child(int(sys.argv[2]))
    if sys.argv[1:] not in ([], ["--quick"]):
        sys.exit(__doc__)
    quick = len(sys.argv) > 1
    steps = measure_steps(quick)
    print_table(steps, measure_all_reduce(quick))


if __name__ == "__main__":
    main()
