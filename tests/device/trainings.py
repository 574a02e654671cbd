"""What training_numbers.py, processes.py and commands.py share: trainings of the tree's configs, and what they left.

Each is called as `SCRIPT STEPOP DEVICE FOLDER` and prints a line of JSON for each comparison.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

STEPOP, DEVICE, FOLDER = sys.argv[1:]
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

DIGITS = ["digits.yaml"]
VUNET = ["vunet/base.yaml", "vunet/small.yaml"]
PIX2PIX = ["pix2pix/base.yaml", "pix2pix/small.yaml"]


def run(words, timeout=140):
    begin = time.time()
    done = subprocess.run([STEPOP, *words, "--num_threads", "2"], cwd=FOLDER, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr, time.time() - begin


def start(name, configs, words, steps, device):
    base = [str(CONFIGS / config) for config in configs]
    status, text, seconds = run(["-n", f"{name}_{device}", "-b", *base, "-t", "--device", device, "--num_steps", str(steps),
                                 "--log_freq", "{every: 5}", *words])
    folders = sorted(pathlib.Path(FOLDER, "logs").glob(f"*_{name}_{device}"))
    return status, text, seconds, folders[-1] if folders else None


def losses(folder):
    """The numbers of train/log_op (or train/train_op) by step."""
    lines = {}
    for line in (folder / "train/metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        numbers = {key: value for key, value in entry.items() if key.startswith("train/") and "accuracy" not in key
                   and isinstance(value, (int, float))}
        if numbers:
            lines.setdefault(entry["step"], {}).update(numbers)
    return lines


def tensors(path):
    """The tensors of a checkpoint as bytes, by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in header.items()}


def same_bits(one, other):
    """What is to be told of two runs that must end with the same bits."""
    ours, theirs = (tensors(folder / "train/checkpoints/model-20.safetensors") for folder in (one, other))
    different = sorted(key for key in ours if ours[key] != theirs.get(key))
    told = {"tensors": len(ours), "different": len(different)}
    return told | ({"failed": ", ".join(different[:5])} if different else {})


def run_beside(number, jobs):
    """Runs so many at a time, prints each result the moment that it is there; how many failed."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        for done in concurrent.futures.as_completed([pool.submit(job) for job in jobs]):
            try:
                told = done.result()
            except Exception as error:  # the others go on
                told = {"failed": repr(error)[-1500:]}
            failed += "failed" in told
            print(json.dumps(told), flush=True)
    return failed


def finish(jobs, alone=()):
    """Runs `jobs` beside each other, then `alone` one by one; says how many failed, and ends."""
    failed = run_beside(8, jobs) + run_beside(1, alone)
    print(json.dumps({"comparisons": len(jobs) + len(alone), "failed": failed}))
    sys.exit(failed > 0)
