"""Trains configs on the CPU and on a GPU and compares what they log; and the bits of a GPU's resume.

    training_numbers.py STEPOP DEVICE FOLDER

The weights of a start, the order of examples and what augments them are the same on every device; what a network draws
itself (dropout, noise) is not, so such configs are only trained.
"""

import math
import os
import shutil

from trainings import DEVICE, DIGITS, FOLDER, PIX2PIX, VUNET, finish, losses, run, same_bits, start

DETERMINISTIC = ["--deterministic", "true"]
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
    ("digits_extras", [*DIGITS, "digits_extras.yaml"], [], 20, None),
    ("digits_augmented", ["digits_augmented.yaml"], [], 20, None),
    ("digits_load", DIGITS, ["--hooks/load", "{class: MachineLoad, when: {every: 5}}"], 20, None),
    ("diffusion", ["extensible/diffusion.yaml"], [], 20, None),
    ("sr", ["extensible/sr.yaml"], [], 20, None),
    ("pix2pix_extended", [*PIX2PIX, "pix2pix/extended.yaml"], [], 20, None),
]
GRAPHS = [
    ("digits", DIGITS, []),
    ("digits_ema", DIGITS, ["--ema/decay", "0.9"]),
    ("digits_skip", DIGITS, ["--on_nan", "skip", "--optimizer/clip_norm", "1"]),
    ("digits_bfloat16", DIGITS, ["--precision", "bfloat16"]),
    ("digits_float16", DIGITS, ["--precision", "float16"]),
    ("digits_sgd", DIGITS, ["--optimizer", "{class: SGD, lr: 0.1, momentum: 0.9, weight_decay: 1e-3}"]),
    ("digits_cosine", DIGITS, ["--optimizer", "{class: AdamW, lr: {class: cosine, from: 1e-3, steps: end}, clip_value: 0.01}"]),
    ("digits_ignore", DIGITS, ["--on_nan", "ignore", "--optimizer/amsgrad", "true"]),
    ("digits_muon", DIGITS, ["--optimizer", "{class: Muon, lr: 1e-3}"]),
    ("digits_swa", DIGITS, ["--swa", "{from: 10s, every: 2s}"]),
    ("digits_profile", DIGITS, ["--profile"]),
    ("digits_augmented", ["digits_augmented.yaml"], []),
    ("flow", ["trainer/flow_digits.yaml"], []),
]
OPTIMIZERS = ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "ASGD", "Rprop", "Lion", "LAMB",
              "LARS", "Muon", "Adafactor", "ScheduleFreeAdamW", "LBFGS"]


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


def not_finite(name, words):
    """A loss that is not finite ends the training, and nothing bad is saved."""
    status, text, _, folder = start(name, DIGITS, ["--optimizer", "{class: SGD, lr: 1e30}", *words], 40, DEVICE)
    told = {"case": name, "status": status, "said": text.strip().splitlines()[-1]}
    return told if status not in (0, -6, -11) and "the update was not made" in text else told | {"failed": text[-1500:]}


def wrong_class():
    """A class that the network has no output for is found before the run, as on the CPU."""
    status, text, _, _ = start("wrong_class", DIGITS, ["--model/classes", "5"], 10, DEVICE)
    told = {"case": "wrong_class", "status": status, "said": text.strip().splitlines()[-6:]}
    return told if "the network has 5 outputs, classes 0 to 4" in text else told | {"failed": text[-1500:]}


def out_of_memory():
    """More than the GPU has is an error and no crash."""
    size = ["--model/spatial_size", "256", "--datasets/train/size", "256", "--datasets/validation/size", "256"]
    channels = ["--model/nf_start", "64", "--model/nf_max", "128"]
    status, text, _, _ = start("memory", VUNET, ["--batch_size", "4000", "--test_batch_size", "4", *size, *channels], 10, DEVICE)
    told = {"case": "memory", "status": status, "said": text.strip().splitlines()[-6:]}
    return told if status == 1 and "what would help: --on_out_of_memory split" in text else told | {"failed": text[-1500:]}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    jobs = [lambda case=case: compare(case) for case in CASES]
    # Within a step, LBFGS goes where the last digits of twenty gradients lead it.
    jobs += [lambda name=name: compare((f"digits_{name}", DIGITS, ["--optimizer", f"{{class: {name}, lr: 1e-3}}"],
                                        5 if name == "LBFGS" else 15, 0.1 if name == "LBFGS" else 0.02)) for name in OPTIMIZERS]
    jobs += [lambda: resume("digits", DIGITS, []), lambda: resume("vunet", VUNET, []), lambda: resume("pix2pix", PIX2PIX, []),
             lambda: resume("flow", ["trainer/flow_digits.yaml"], ["--checkpoints/keep_last", "0"]),
             lambda: resume("srgan", ["extensible/toy_srgan.yaml"], []), lambda: not_finite("nan", []), wrong_class]
    alone = []
    if DEVICE != "cpu":  # which has no graphs, and as much memory as the machine
        jobs += [lambda case=case: graph(*case) for case in GRAPHS]
        jobs += [lambda: resume("graph", DIGITS, ["--cuda_graph", "true"]),
                 lambda: not_finite("nan_graph", ["--cuda_graph", "true"])]
        alone = [out_of_memory]  # takes all of it
    finish(jobs, alone)


if __name__ == "__main__":
    main()
