"""Draws metrics and their data at random, and writes what torchmetrics makes of them.

    draws.py FILE

The metadata of FILE has each draw's config in YAML. Prints `no torchmetrics` where that is not
installed.
"""

import importlib.util
import random
import sys
import warnings

if importlib.util.find_spec("torchmetrics") is None:
    print("no torchmetrics", end="")
    sys.exit()

warnings.simplefilter("ignore")
import torch  # noqa: E402
import torchmetrics  # noqa: E402
import torchmetrics.text  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

draw = random.Random(61)
torch.manual_seed(61)
tensors, configs = {}, {}
LEFT_OUT = {"ignore_index": -100}


def classes(count, shape):
    """Some classes never occur, some targets are left out."""
    seen = draw.sample(range(count), draw.randint(1, count))
    target = torch.tensor(seen)[torch.randint(0, len(seen), shape)]
    target[torch.rand(shape) < draw.choice([0.0, 0.2])] = -100
    return target


def draw_metric(name, kind):
    count, rows = draw.randint(2, 7), draw.choice([1, 5, 60])
    more = draw.choice([(), (4, 3)])
    target = classes(count, (rows, *more))
    logits = torch.randn(rows, count, *more) * draw.choice([0.1, 4.0])
    average = draw.choice(["macro", "none"])
    several = {"task": "multiclass", "num_classes": count, **LEFT_OUT}
    if kind == "TopK":
        k = draw.randint(1, count)
        config = f"{{class: TopK, k: {k}}}"
        metric = torchmetrics.Accuracy(average="micro", top_k=k, **several)
        logits, target = (logits, target) if not more else (logits[..., 0, 0], target[..., 0, 0])
    elif kind == "F1":
        average = draw.choice(["macro", "micro", "none"])
        config = f"{{class: F1, average: {average}}}"
        metric = torchmetrics.F1Score(average=average, **several)
    elif kind == "MeanIoU":
        config = f"{{class: MeanIoU, average: {average}}}"
        metric = torchmetrics.JaccardIndex(average=average, **several)
    elif kind == "AUROC":
        thresholds = draw.choice([5, 64])
        config = f"{{class: AUROC, thresholds: {thresholds}}}"
        target = torch.randint(0, 2, (rows + 5,))
        target[:2] = torch.tensor([0, 1])
        logits = torch.randn(rows + 5)
        metric = torchmetrics.AUROC(task="binary", thresholds=thresholds)
    else:
        config = "Perplexity"
        logits = torch.randn(rows, 6, count)
        target = torch.randint(0, count, (rows, 6))
        target[:, draw.randint(1, 5):] = -100
        metric = torchmetrics.text.Perplexity(**LEFT_OUT)
    if (target == -100).all():
        target.flatten()[0] = 0
    configs[name] = config
    tensors[f"{name}/prediction"] = logits.contiguous()
    tensors[f"{name}/target"] = target.contiguous()
    tensors[f"{name}/value"] = metric(logits, target).double().reshape(-1)


KINDS = ["TopK", "F1", "MeanIoU", "AUROC", "Perplexity"]
for i in range(20):
    draw_metric(f"metric{i}", KINDS[i % len(KINDS)])
save_file(tensors, sys.argv[1], configs)
