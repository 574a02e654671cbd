"""Trains configs on the CPU and on a GPU and compares what they log; and the bits of a GPU's resume.

    numbers.py STEPOP DEVICE FOLDER

Prints a line of JSON for each comparison. The weights of a start, the order of examples and what augments them are the same
on every device; what a network draws itself (dropout, noise) is not, so such configs are only trained.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

STEPOP, DEVICE, FOLDER = sys.argv[1:]
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
DETERMINISTIC = ["--deterministic", "true"]

DIGITS = ["digits.yaml"]
VUNET = ["vunet/base.yaml", "vunet/small.yaml"]
PIX2PIX = ["pix2pix/base.yaml", "pix2pix/small.yaml"]
# Name, configs, words, steps, the largest relative difference of the losses of the first steps; none where the network draws.
CASES = [
    ("digits", DIGITS, [], 60, 0.02),
    ("digits_skip", DIGITS, ["--on_nan", "skip", "--optimizer/clip_norm", "1"], 30, 0.02),
    ("digits_accumulate_ema", DIGITS, ["--accumulate", "2", "--ema/decay", "0.9", "--eval_weights", "ema"], 30, 0.02),
    ("digits_bfloat16", DIGITS, ["--precision", "bfloat16"], 30, 0.1),
    ("digits_channels_last", DIGITS, ["--channels_last", "true"], 30, 0.02),
    ("digits_swa", DIGITS, ["--swa", "{from: 10s, every: 2s}"], 30, 0.02),
    ("digits_workers", DIGITS, ["--n_data_processes", "3"], 30, 0.02),
    ("digits_modules", DIGITS, ["--checkpoint_modules", "[conv1]"], 30, 0.02),
    ("digits_profile", DIGITS, ["--profile"], 30, 0.02),
    ("vunet", VUNET, [], 20, None),
    ("vunet_bfloat16", VUNET, ["--precision", "bfloat16"], 20, None),
    ("pix2pix", PIX2PIX, [], 20, None),
    ("pix2pix_pool", PIX2PIX, ["--image_pool", "3", "--ema", "{decay: 0.9, networks: [generator]}"], 20, None),
    ("pix2pix_bfloat16", PIX2PIX, ["--precision", "bfloat16"], 20, None),
    ("pix2pix_modules", PIX2PIX, ["--checkpoint_modules", "[^generator]"], 20, None),
    ("vunet_modules", VUNET, ["--checkpoint_modules", "[^model]"], 20, None),
    ("digits_tf32", DIGITS, ["--matmul_precision", "high", "--cudnn_benchmark", "true"], 30, 0.05),
    ("flow", ["trainer/flow_digits.yaml"], ["--sampling/digits/when", "{every: 10}"], 20, None),
    ("adversarial_vae", ["trainer/adversarial_vae.yaml"], [], 20, None),
    ("toy_srgan", ["extensible/toy_srgan.yaml"], [], 20, None),
]
OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Lion", "LAMB", "LARS", "Muon", "Adafactor", "ScheduleFreeAdamW"]


def run(words, timeout=140):
    start = time.time()
    done = subprocess.run([STEPOP, *words, "--num_threads", "2"], cwd=FOLDER, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr, time.time() - start


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


def compare(case):
    name, configs, words, steps, tolerance = case
    devices = ["cpu", DEVICE] if tolerance is not None else [DEVICE]
    results = [start(name, configs, words, steps, device) for device in devices]
    told = {"case": name, "seconds": round(results[-1][2], 1)}
    for device, (status, text, _, _) in zip(devices, results):
        if status != 0:
            told["failed"] = f"{device}: status {status}: {text[-1500:]}"
            return told
    if tolerance is None:
        return told | {"trained": True}
    cpu, gpu = (losses(result[3]) for result in results)
    worst = 0.0
    for step in cpu:
        for key, value in cpu[step].items():
            other = gpu.get(step, {}).get(key)
            if other is None:
                return told | {"failed": f"step {step}: no {key}"}
            worst = max(worst, abs(other - value) / max(abs(value), 1e-6)) if math.isfinite(other) else math.inf
    told["largest_relative_difference"] = float(f"{worst:.3g}")
    if worst > tolerance:
        told["failed"] = f"more than {tolerance}"
    return told


def tensors(path):
    """The tensors of a checkpoint as bytes, by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in header.items()}


def resume(name, configs, words):
    """20 steps in one go, and again from the checkpoint of step 10, with the same bits at the end."""
    told = {"case": f"resume_{name}"}
    status, text, _, whole = start(f"whole_{name}", configs, [*words, *DETERMINISTIC, "--ckpt_freq", "10"], 20, DEVICE)
    if status != 0:
        return told | {"failed": text[-1500:]}
    again = whole.with_name(whole.name.replace("whole", "again"))
    shutil.copytree(whole, again, symlinks=True)
    tenth = "train/checkpoints/model-10.safetensors"
    for link in "latest", "best":
        (again / f"train/checkpoints/{link}.safetensors").unlink(missing_ok=True)
    (again / "train/checkpoints/model-20.safetensors").unlink()
    status, text, _ = run(["-p", str(again), "-t"])
    if status != 0:
        return told | {"failed": text[-1500:]}
    if (again / tenth).stat().st_mtime != (whole / tenth).stat().st_mtime:
        return told | {"failed": "did not go on from step 10"}
    return told | same_bits(whole, again)


def same_bits(one, other):
    """What is to be told of two runs that must end with the same bits."""
    ours, theirs = (tensors(folder / "train/checkpoints/model-20.safetensors") for folder in (one, other))
    different = sorted(key for key in ours if ours[key] != theirs.get(key))
    told = {"tensors": len(ours), "different": len(different)}
    return told | ({"failed": ", ".join(different[:5])} if different else {})


def graph(name, configs, words):
    """20 steps with cuda_graph have the bits of those without."""
    told = {"case": f"graph_{name}"}
    folders = []
    for run_name, more in (f"eager_{name}", []), (f"graph_{name}", ["--cuda_graph", "true"]):
        status, text, seconds, folder = start(run_name, configs, [*words, *more, *DETERMINISTIC], 20, DEVICE)
        if status != 0:
            return told | {"failed": f"{run_name}: status {status}: {text[-1500:]}"}
        folders.append(folder)
    return told | {"seconds": round(seconds, 1)} | same_bits(*folders)


def not_finite():
    """A loss that is not finite ends the training, and nothing bad is saved."""
    status, text, _, folder = start("nan", DIGITS, ["--optimizer", "{class: SGD, lr: 1e30}"], 40, DEVICE)
    told = {"case": "nan", "status": status, "said": text.strip().splitlines()[-1]}
    return told if status not in (0, -6, -11) and "the update was not made" in text else told | {"failed": text[-1500:]}


def wrong_class():
    """A class that the network has no output for is an error and no crash."""
    status, text, _, _ = start("wrong_class", DIGITS, ["--model/classes", "5"], 10, DEVICE)
    told = {"case": "wrong_class", "status": status, "said": text.strip().splitlines()[-6:]}
    return told if status == 1 or status == 2 else told | {"failed": text[-1500:]}


def out_of_memory():
    """More than the GPU has is an error and no crash."""
    size = ["--model/spatial_size", "256", "--datasets/train/size", "256", "--datasets/validation/size", "256"]
    channels = ["--model/nf_start", "64", "--model/nf_max", "128"]
    status, text, _, _ = start("memory", VUNET, ["--batch_size", "4000", "--test_batch_size", "4", *size, *channels], 10, DEVICE)
    told = {"case": "memory", "status": status, "said": text.strip().splitlines()[-6:]}
    return told if status == 1 and "memory" in text else told | {"failed": text[-1500:]}


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


def main():
    os.makedirs(FOLDER, exist_ok=True)
    jobs = [lambda case=case: compare(case) for case in CASES]
    jobs += [lambda name=name: compare((f"digits_{name}", DIGITS, ["--optimizer", f"{{class: {name}, lr: 1e-3}}"], 15, 0.02))
             for name in OPTIMIZERS]
    jobs += [lambda: resume("digits", DIGITS, []), lambda: resume("vunet", VUNET, []), lambda: resume("pix2pix", PIX2PIX, []),
             lambda: resume("flow", ["trainer/flow_digits.yaml"], ["--checkpoints/keep_last", "0"]), lambda: resume("srgan", ["extensible/toy_srgan.yaml"], []), not_finite, wrong_class]
    if DEVICE != "cpu":  # which has no graphs, and as much memory as the machine
        jobs += [lambda: graph("digits", DIGITS, []), lambda: graph("digits_ema", DIGITS, ["--ema/decay", "0.9"]),
                 lambda: graph("flow", ["trainer/flow_digits.yaml"], [])]
    failed = run_beside(8, jobs)
    if DEVICE != "cpu":  # alone, as it takes all memory
        jobs.append(out_of_memory)
        failed += run_beside(1, jobs[-1:])
    print(json.dumps({"comparisons": len(jobs), "failed": failed}))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
