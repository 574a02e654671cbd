"""What is done with a run of a GPU: evaluations, exports, samples, the settings that `stepop tune` finds, too little memory.

    commands.py STEPOP DEVICE FOLDER
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from trainings import CONFIGS, DEVICE, DIGITS, FOLDER, VUNET, finish, losses, run, start

WITH_TORCH = """
import sys, torch
path, device = sys.argv[1:]
images = (torch.arange(8 * 64).view(8, 1, 8, 8) % 17).float() / 8 - 1
net = torch.jit.load(path, map_location=device) if path.endswith(".pt") else torch.export.load(path).module().to(device)
out = net(images.to(device))
out = out if isinstance(out, torch.Tensor) else next(iter(out.values())) if isinstance(out, dict) else out[0]
print(out.double().cpu().flatten().tolist())
"""


def well(words, timeout=140):
    status, text, _ = run(words, timeout)
    if status != 0:
        raise RuntimeError(f"{' '.join(words[:6])}: status {status}: {text[-1200:]}")
    return text


def digits(name, device=DEVICE, words=()):
    status, text, _, folder = start(name, DIGITS, list(words), 100, device)
    if status != 0:
        raise RuntimeError(text[-1200:])
    return folder


def evaluated():
    """The numbers of an evaluation on the GPU and on the CPU, of a run of each."""
    told = {"case": "evaluated"}
    for of in {DEVICE, "cpu"}:
        folder = digits("evaluated", of)
        numbers = []
        for device in (DEVICE, "cpu"):
            text = well(["-p", str(folder), "--device", device])
            line = re.search(r"validation/eval_op: .*", text)
            numbers.append([float(number) for number in re.findall(r" ([-+.\de]*\d)", line.group())] if line else [])
        told[f"run_of_{of}"] = numbers
        same = len(numbers[0]) == len(numbers[1]) > 0
        if not same or any(not abs(a - b) <= 1e-3 for a, b in zip(*numbers)):
            told["failed"] = f"a run of {of}"
    return told


def exported(kind):
    """A run of the GPU as a file, which `stepop export` compares with the network; PyTorch runs it on the GPU and on the CPU."""
    file = f"{FOLDER}/digits.{kind}"
    well(["export", str(digits(f"exported_{kind}")), "-o", file])
    told = {"case": f"exported_{kind}", "bytes": pathlib.Path(file).stat().st_size}
    if kind == "onnx":
        return told
    outs = []
    for device in (DEVICE, "cpu"):
        done = subprocess.run([sys.executable, "-c", WITH_TORCH, file, device], capture_output=True, text=True)
        if done.returncode != 0:
            return told | {"failed": f"{device}: {done.stderr[-800:]}"}
        outs.append(json.loads(done.stdout))
    worst = max(abs(a - b) for a, b in zip(*outs))
    told |= {"outputs": len(outs[0]), "difference": float(f"{worst:.3g}")}
    return told if worst < 1e-2 and len(outs[0]) == 80 else told | {"failed": "other outputs"}


def begun_with():
    """Weights of a run of the CPU begin one of the GPU, and back: after five steps the losses differ by 0.02 at most."""
    firsts = []
    for of in (DEVICE, "cpu"):
        weights = digits("giving", of) / "train/checkpoints/latest.safetensors"
        pair = []
        for device in (DEVICE, "cpu"):
            folder = digits(f"given_{of}", device, ["--init_from", str(weights.resolve())])
            pair.append(losses(folder)[5]["train/log_op/loss"])
        firsts.append(pair)
    told = {"case": "begun_with", "losses": firsts}
    return told if all(abs(a - b) <= 0.02 for a, b in firsts) else told | {"failed": "other losses"}


def samples():
    """Digits of a flow, made on the GPU."""
    status, text, _, folder = start("samples", ["trainer/flow_digits.yaml"], [], 40, DEVICE)
    if status != 0:
        return {"case": "samples", "failed": text[-1200:]}
    well(["-p", str(folder), "--eval_functor", "Generate", "-n", "made", "--debug/max_examples", "8", "-d"])
    return {"case": "samples"}


def tuned():
    """On a GPU, `stepop tune` finds that graphs of a step are faster."""
    text = well(["tune", "-b", str(CONFIGS / "digits.yaml"), "--device", DEVICE, "--time", "40s"])
    told = {"case": "tuned", "said": text.strip().splitlines()[-14:]}
    found = re.search(r"^cuda_graph true.*: [\d.]+ times the present speed", text, re.MULTILINE)
    return told if DEVICE == "cpu" or found else told | {"failed": "without cuda_graph"}


def divided():
    """A batch that does not fit is trained in parts, with the gradient of the whole: all but 3 GB are taken here."""
    import torch

    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - (3 << 30), dtype=torch.uint8, device=DEVICE)
    words = ["--batch_size", "1500", "--n_data_processes", "6", "--on_out_of_memory", "split"]
    status, text, seconds, folder = start("divided", VUNET, words, 3, DEVICE)
    refused, said, _, _ = start("undivided", VUNET, words[:-2], 3, DEVICE)
    del taken
    parts = [line for line in text.splitlines() if "memory" in line]
    told = {"case": "divided", "status": status, "seconds": round(seconds, 1), "said": parts[-3:],
            "without": said.strip().splitlines()[-3:]}
    good = status == 0 and any("part" in line for line in parts) and refused == 1 and "memory" in said
    return told if good else told | {"failed": text[-1500:] + said[-700:]}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    jobs = [evaluated, begun_with, samples, *(lambda kind=kind: exported(kind) for kind in ("pt", "pt2", "onnx"))]
    finish(jobs, [tuned] if DEVICE == "cpu" else [tuned, divided])


if __name__ == "__main__":
    main()
