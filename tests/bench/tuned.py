#!/usr/bin/env python3
"""What `stepop tune` brings: `tests/bench/tuned.py [batch size ...]`, by default 4 and 64.

Tunes LeNet, then trains with the config as it is and with tuned.yaml in turns, whole trainings by the real program,
and prints steps a second of both. The start is not counted: a short training is subtracted. To be run on a quiet
machine; it takes some five minutes.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPOP = os.path.join(TREE, "build/stepop")
CONFIG = {"iterator": "Classifier", "model": "LeNet", "optimizer": {"class": "Adam", "lr": 1e-3},
          "datasets": {"train": {"class": "Synthetic", "size": 60000}}, "num_epochs": 1}
ROUNDS = 3
FEW = 200  # steps of the training that is subtracted
SECONDS = 10  # about so long trains the config as it is


def run(folder, words):
    done = subprocess.run([STEPOP, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{words}:\n{done.stdout}")
    return done.stdout


def seconds(folder, files, batch, steps):
    begin = time.monotonic()
    run(folder, ["-n", "bench", "-b", *files, "-t", "--batch_size", str(batch), "--num_steps", str(steps),
                 "--log_ops", "[]", "-l", "critical"])
    return time.monotonic() - begin


def steps_per_second(folder, files, batch, steps):
    return steps / (seconds(folder, files, batch, FEW + steps) - seconds(folder, files, batch, FEW))


def main():
    for batch in [int(word) for word in sys.argv[1:]] or [4, 64]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "lenet.yaml"), "w", encoding="utf-8") as file:
                json.dump(CONFIG, file)
            print(run(folder, ["tune", "-b", "lenet.yaml", "--batch_size", str(batch)]))
            ways = {"as it is": ["lenet.yaml"], "tuned": ["lenet.yaml", "tuned.yaml"]}
            steps = int(SECONDS * steps_per_second(folder, ways["as it is"], batch, FEW))
            rates = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, files in ways.items():
                    rates[way].append(steps_per_second(folder, files, batch, steps))
            medians = {way: statistics.median(each) for way, each in rates.items()}
            print(f"| LeNet, batch {batch} | {medians['as it is']:,.0f} | {medians['tuned']:,.0f} | "
                  f"{medians['tuned'] / medians['as it is']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
