"""Makes expected.json: inputs of callbacks, and what scikit-learn and scikit-image say of them.

    python3 -m venv venv && venv/bin/pip install scikit-learn==1.9.1 scikit-image==0.26.0
    venv/bin/python tests/eval_out/callbacks/make_expected.py
"""

import json
import pathlib

import numpy as np
import skimage
import sklearn
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from sklearn import metrics

random = np.random.default_rng(7)


def rounded(array, digits=3):
    return np.round(array.astype(np.float64), digits)


def classification():
    rows, classes = 60, 5
    # Class 3 never occurs but is said now and then; class 4 occurs and is never said.
    truth = random.choice([0, 0, 1, 2, 4], rows)
    logits = rounded(random.normal(size=(rows, classes)) + 2.0 * np.eye(classes)[truth])
    logits[:, 4] = -9
    said = logits.argmax(1)
    assert 3 in said and 3 not in truth
    seen = sorted(set(truth) | set(said))
    names = ["precision", "recall", "f1"]
    *by_class, support = metrics.precision_recall_fscore_support(
        truth, said, labels=seen, zero_division=0)
    averages = {}
    for kind in ["macro", "weighted"]:
        values = metrics.precision_recall_fscore_support(
            truth, said, labels=seen, average=kind, zero_division=0)
        averages |= {f"{kind}_{name}": float(value) for name, value in zip(names, values)}
    return {
        "logits": logits.tolist(),
        "class": truth.tolist(),
        "accuracy": metrics.accuracy_score(truth, said),
        "balanced_accuracy": metrics.recall_score(
            truth, said, labels=sorted(set(truth)), average="macro"),
        "top_k": {k: metrics.top_k_accuracy_score(truth, logits, k=k, labels=range(classes))
                  for k in [1, 2, 3]},
        "confusion": metrics.confusion_matrix(truth, said, labels=range(classes)).tolist(),
        "confusion_normalized": metrics.confusion_matrix(
            truth, said, labels=range(classes), normalize="true").tolist(),
        "classes": [int(c) for c in seen],
        "support": support.tolist(),
        "averages": averages,
    } | {name: values.tolist() for name, values in zip(names, by_class)}


def regression():
    target = rounded(random.normal(size=(20, 3)) * [1, 5, 100] + [0, 3, 1e4])
    prediction = rounded(target + random.normal(size=(20, 3)) * [0.5, 1, 50])
    return {
        "target": target.tolist(),
        "prediction": prediction.tolist(),
        "mae": metrics.mean_absolute_error(target, prediction),
        "rmse": metrics.root_mean_squared_error(target, prediction),
        "r2": metrics.r2_score(target, prediction),
    }


def images(channels):
    shape = (2, channels, 14, 17)
    y, x = np.mgrid[0:14, 0:17]
    clean = np.sin(x / 3) * np.cos(y / 4) + 0.2 * random.normal(size=shape)
    target = rounded(np.clip(clean, -1, 1), 2)
    prediction = rounded(np.clip(target + 0.15 * random.normal(size=shape), -1, 1), 2)
    pairs = list(zip(target, prediction))
    return {
        "shape": shape,
        "target": target.ravel().tolist(),
        "prediction": prediction.ravel().tolist(),
        "psnr": [peak_signal_noise_ratio(t, p, data_range=2) for t, p in pairs],
        # Of values from 0 on: SSIM compares means.
        "ssim": [ssim(t + 1, p + 1, 2) for t, p in pairs],
    }


def ssim(target, prediction, data_range):
    return structural_similarity(target, prediction, data_range=data_range, channel_axis=0,
                                 gaussian_weights=True, sigma=1.5, use_sample_covariance=False)


def byte_images():
    """Pictures of 8 bits that are darkened, with noise, and lighter."""
    y, x = np.mgrid[0:16, 0:18]
    target = np.stack([120 + 90 * np.sin(x / (2 + i) + c) * np.cos(y / 4) for i in range(3)
                       for c in range(3)]).reshape(3, 3, 16, 18)
    noise = 20 * random.normal(size=target.shape[1:])
    prediction = np.stack([0.8 * target[0], target[1] + noise, target[2] + 30])
    target, prediction = (a.round().clip(0, 255).astype(np.uint8) for a in (target, prediction))
    return {
        "shape": target.shape,
        "target": target.ravel().tolist(),
        "prediction": prediction.ravel().tolist(),
        "psnr": [peak_signal_noise_ratio(t, p, data_range=255) for t, p in zip(target, prediction)],
        "ssim": [ssim(t, p, 255) for t, p in zip(target, prediction)],
    }


def histogram():
    values = rounded(random.normal(size=40))
    counts, edges = np.histogram(values, bins=8)
    cut, _ = np.histogram(values, bins=5, range=(-1, 1))
    return {"values": values.tolist(), "counts": counts.tolist(), "edges": edges.tolist(),
            "counts_in_range": cut.tolist(), "mean": values.mean(), "std": values.std(),
            "min": values.min(), "max": values.max()}


expected = {
    "made_with": f"scikit-learn {sklearn.__version__}, scikit-image {skimage.__version__}, "
                 f"numpy {np.__version__}",
    "classification": classification(),
    "regression": regression(),
    "colour_images": images(3),
    "grey_images": images(1),
    "histogram": histogram(),
    "byte_images": byte_images(),
}
lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items()]
path = pathlib.Path(__file__).with_name("expected.json")
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
