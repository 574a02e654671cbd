"""python make_classifier_expected.py > classifier_expected.json: what PyTorch and torchmetrics say of the
targets that classifier_test.cpp makes in the same way."""

import itertools
import json

import torch
import torchmetrics
from torch.nn.functional import cross_entropy

CLASSES = 5
SHAPES = {"image": [], "tokens": [6], "pixels": [3, 5]}
EXAMPLES = 4
WEIGHTS = [0.5, 1, 2, 0, 3]


def data(shape):
    """Scores [EXAMPLES, CLASSES, ...] and classes [EXAMPLES, ...], every fourth of which does not count."""
    scores = torch.arange(EXAMPLES * CLASSES * int(torch.tensor(shape).prod()), dtype=torch.float32).sin() * 3
    classes = torch.arange(scores.numel() // CLASSES) * 7 % CLASSES
    classes[::4] = -100
    return scores.reshape(EXAMPLES, CLASSES, *shape), classes.reshape(EXAMPLES, *shape)


def soft_labels(scores):
    return (scores * 0.5).cos().square().softmax(1)


def loss_and_slope(scores, targets, **options):
    """The loss of scores times a number, and its derivative by that number, where it is 1."""
    factor = torch.ones([], requires_grad=True)
    loss = cross_entropy(scores * factor, targets, **options)
    loss.backward()
    return loss.item(), factor.grad.item()


losses = []
for kind, is_soft, smoothing, weights in itertools.product(SHAPES, [False, True], [0, 0.1], [None, WEIGHTS]):
    scores, classes = data(SHAPES[kind])
    loss, slope = loss_and_slope(scores, soft_labels(scores) if is_soft else classes, label_smoothing=smoothing,
                                 weight=None if weights is None else torch.tensor(weights))
    losses.append({"kind": kind, "soft": is_soft, "label_smoothing": smoothing, "class_weights": weights,
                   "loss": loss, "slope": slope})

scores, classes = data(SHAPES["pixels"])
iou = torchmetrics.JaccardIndex(task="multiclass", num_classes=CLASSES, ignore_index=-100)
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES, ignore_index=-100, average="micro")
print(json.dumps({"losses": losses, "iou": iou(scores, classes).item(), "accuracy": accuracy(scores, classes).item()},
                 indent=1))
