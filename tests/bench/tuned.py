#!/usr/bin/env python3
"""What `stepop tune` brings: `tests/bench/tuned.py [training ...]`, by default all of TRAININGS.

Tunes each, then trains with the config as it is and with tuned.yaml in turns, whole trainings by the real program,
and prints steps a second of both. The start is not counted: a short training is subtracted. To be run on a quiet
machine; each takes some three minutes.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPOP = os.path.join(TREE, "build/stepop")
LENET = {"iterator": "Classifier", "model": "LeNet", "optimizer": {"class": "Adam", "lr": 1e-3},
         "datasets": {"train": {"class": "Synthetic", "size": 600000}}, "num_epochs": 1}
VUNET = {"iterator": "VUNetIterator", "model": {"class": "VUNet", "spatial_size": 64, "nf_start": 16, "nf_max": 32},
         "losses": {"color_L1": {"weight": 10}, "KL": {"weight": 1e-4}}, "optimizer": {"class": "Adam", "lr": 1e-4},
         "datasets": {"train": {"class": "Figures", "size": 64, "examples": 60000}}, "num_epochs": 1}
# A config, files of configs/, or a template; then words for all commands.
TRAININGS = {
    "LeNet, batch 4": (LENET, ["--batch_size", "4"]),
    "LeNet, batch 64": (LENET, ["--batch_size", "64"]),
    "VUNet, 64x64, batch 8": (VUNET, ["--batch_size", "8"]),
    "digits": (["digits.yaml"], []),
    "pix2pix, small": (["pix2pix/base.yaml", "pix2pix/small.yaml"], []),
    "toy_srgan": (["extensible/toy_srgan.yaml"], []),
    "flow_digits": (["trainer/flow_digits.yaml"], []),
    "template classifier": ("classifier", []),
    "template language_model": ("language_model", []),
    "template table": ("table", []),
    "template gan": ("gan", []),
}
ROUNDS = 3
FEW = 60  # steps of the training that is subtracted
SECONDS = 10  # about so long trains the config as it is


def run(folder, words):
    done = subprocess.run([STEPOP, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{words}:\n{done.stdout}")
    return done.stdout


def has_epochs(folder, files):
    """Whether the last file that says something of num_epochs gives a number."""
    texts = [pathlib.Path(folder, file).read_text(encoding="utf-8") for file in files]
    values = re.findall(r'(?m)\bnum_epochs"?: *([^\s,}]+)', "\n".join(texts))
    return bool(values) and values[-1] != "!remove"


def seconds(folder, files, words, steps):
    begin = time.monotonic()
    by_epochs = ["--num_epochs", "!remove"] if has_epochs(folder, files) else []
    run(folder, ["-n", "bench", "-b", *files, "-t", *words, *by_epochs, "--num_steps", str(steps), "--log_ops", "[]",
                 "--eval_hook/freq", "1000000000", "--checkpoints", "{keep_last: 1}", "-l", "critical"])
    return time.monotonic() - begin


def steps_per_second(folder, files, words, steps):
    return steps / (seconds(folder, files, words, FEW + steps) - seconds(folder, files, words, FEW))


def files_of(what, folder):
    """The folder to train in, and the config's files."""
    if isinstance(what, str):
        run(folder, ["new", "made", "--template", what])
        made = os.path.join(folder, "made")
        return made, sorted(name for name in os.listdir(made) if name.endswith(".yaml"))[:1]
    if isinstance(what, list):
        return folder, [os.path.join(TREE, "configs", name) for name in what]
    with open(os.path.join(folder, "base.yaml"), "w", encoding="utf-8") as file:
        json.dump(what, file)
    return folder, ["base.yaml"]


def main():
    for name in sys.argv[1:] or TRAININGS:
        what, words = TRAININGS[name]
        with tempfile.TemporaryDirectory() as scratch:
            folder, files = files_of(what, scratch)
            print(run(folder, ["tune", "-b", *files, *words]))
            ways = {"as it is": files, "tuned": [*files, "tuned.yaml"]}
            steps = max(FEW, int(SECONDS * steps_per_second(folder, files, words, FEW)))
            rates = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, config in ways.items():
                    rates[way].append(steps_per_second(folder, config, words, steps))
            medians = {way: statistics.median(each) for way, each in rates.items()}
            print(f"| {name} | {medians['as it is']:,.0f} | {medians['tuned']:,.0f} | "
                  f"{medians['tuned'] / medians['as it is']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
