"""Trains the configs of the tree, and writes configs/GALLERY.md and its pictures: `make gallery`.

    make.py [--fresh] [--draw] [NAME...]

An entry whose commands are those of results.json is not trained again, so a call resumes one that was
stopped. NAME... redoes these; --fresh redoes all; --draw draws again, from the runs in logs/gallery.
"""

import argparse
import dataclasses
import datetime
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing

import numpy as np
import pictures
from machine import Others

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
LOGS = TREE / "logs" / "gallery"
RESULTS = HERE / "results.json"
sys.path.insert(0, str(TREE / "eval_out" / "python"))
import stepop  # noqa: E402
import stepop.eval  # noqa: E402


@dataclasses.dataclass
class Training:
    """`metrics`: what the page calls a number -> its name in metrics.jsonl. `template`: of `stepop new`, in place
    of configs. `weights_of`: the training in this entry whose generator it begins with."""

    name: str
    configs: list
    metrics: dict
    changes: dict = dataclasses.field(default_factory=dict)
    template: bool = False
    weights_of: str = ""

    def commands(self):
        lines, configs, words = [], [f"configs/{path}" for path in self.configs], ""
        if self.template:
            lines = [f"build/stepop new my_{self.name} --template {self.name}"]
            configs = [f"my_{self.name}/my_{self.name}.yaml"]
        for key, value in self.changes.items():
            words += f" --{key} {value}"
        if self.weights_of:
            words += f" --init_from '{{path: {latest('logs/TIME_' + self.weights_of)}, network: generator}}'"
        return [*lines, f"build/stepop -n {self.name} -b {' '.join(configs)} -t{words}"]

    def run(self, runs):
        configs, changes = [TREE / "configs" / path for path in self.configs], dict(self.changes)
        if self.template:
            folder = LOGS / f"my_{self.name}"
            shutil.rmtree(folder, ignore_errors=True)
            program = [TREE / "build" / "stepop", "new", folder, "--template", self.name]
            subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
            configs = [folder / f"my_{self.name}.yaml"]
        if self.weights_of:
            changes["init_from"] = {"path": latest(runs[self.weights_of].path), "network": "generator"}
        return stepop.train(configs, changes, name=self.name, logs=LOGS, quiet=True)


class Entry(typing.NamedTuple):
    name: str
    title: str
    text: str
    trainings: list
    draw: typing.Callable  # of the runs by name; yields Markdown


def latest(run):
    return f"{run}/train/checkpoints/latest.safetensors"


def shown(name, image, caption):
    """Writes a picture of the gallery, which is SVG where it is a text; returns its Markdown."""
    for old in HERE.glob(name + ".*"):
        old.unlink()
    path = HERE / (name + ".svg")
    if isinstance(image, str):
        path.write_text(image)
    else:
        path = pictures.save(image, path)
    return f"![{caption}](gallery/{path.name})\n\n*{caption}*"


def values(run, metric):
    """Steps and values."""
    column = run.metrics[metric].dropna()
    return list(column.index), list(column)


def curves(name, caption, y_label, lines, log=False):
    """`lines`: name -> (run, metric)."""
    return shown(name, pictures.chart({key: values(*line) for key, line in lines.items()}, "step", y_label, log=log),
                 caption)


def progress(run, key, count):
    """Some `count` pictures of a key, with their steps; the distances grow as those of logs do."""
    images = run.images[key]
    wanted = np.geomspace(images[0].step, images[-1].step, count)
    chosen = {min(images, key=lambda one: abs(np.log(one.step / step))) for step in wanted}
    return [(f"step {one.step:,}", one.path) for one in sorted(chosen, key=lambda one: one.step)]


def array(outputs, key, rows=slice(None)):
    return np.asarray(outputs[key][rows])


def digits():
    """The held-out digits, [355, 8, 8], and their classes."""
    images, labels = (gzip.open(TREE / "configs" / "data" / f"digits-test-{kind}.idx.gz").read()
                      for kind in ("images", "labels"))
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, 8, 8), np.frombuffer(labels, np.uint8, offset=8)


def of_each(labels, nth=0):
    """The row of the nth example of each class."""
    return [np.flatnonzero(labels == digit)[nth] for digit in range(10)]


def draw_confusion(run, name, caption):
    folder = stepop.run_callbacks(run, ["confusion_matrix"], quiet=True).path.parent
    return shown(name, pictures.strip([("", next(folder.glob("confusion_matrix/*.png")))]), caption)


def draw_digits(runs):
    yield draw_confusion(runs["digits"], "digits_confusion", "digits.yaml on 355 held-out digits")
    e = stepop.eval.open(runs["digits"].path)
    said, truth, worst = array(e.outputs, "logits").argmax(1), array(e.outputs, "class"), e.worst("loss", 6)
    images = digits()[0][np.asarray(e.index)]
    labelled = [(f"{truth[row]}, read as {said[row]}", images[row]) for row in worst]
    yield shown("digits_worst", pictures.strip(labelled, 11), "The six with the greatest loss")
    yield curves("digits_loss", "The loss of held-out digits after each epoch", "loss",
                 {name: (run, "validation/eval_op/loss") for name, run in runs.items()}, log=True)


def draw_flow(runs):
    made = stepop.evaluate(runs["flow"], {"eval_functor": "Generate"}, name="made", quiet=True).outputs
    images, labels = digits()
    rows = [("real", images[of_each(labels)])]
    rows += [("" if nth else "made", array(made, "sample")[of_each(array(made, "class"), nth)]) for nth in range(5)]
    yield shown("flow", pictures.rows(rows, 40), "A real digit of each class, and five that the network made")


def draw_diffusion(runs):
    images, labels = digits()
    evaluations = list(runs["diffusion"].evaluations)
    index = np.asarray(evaluations[-1].index)
    chosen = of_each(labels[index])
    rows = [("real", images[index[chosen]])]
    rows += [(f"step {e.global_step:,}", array(e.outputs, "ddim")[chosen]) for e in evaluations]
    rows.append(("by DDPM", array(evaluations[-1].outputs, "ddpm")[chosen]))
    yield shown("diffusion", pictures.rows(rows, 40), "Samples of the classes 0 to 9: DDIM in 25 steps, DDPM in 100")


def draw_vae(runs):
    sheet = runs["vae"].images["train/sample_op/reconstructions/reconstructions"][-1].path
    yield shown("vae", pictures.strip([("", sheet)]), "Held-out digits, and what is left of each after 16 numbers")
    samples = progress(runs["vae"], "train/sample_op/new/samples", 3)
    yield shown("vae_new", pictures.strip(samples), "Decoded noise, as it learns")


def draw_sr(runs):
    some = slice(0, 6)
    before, after = (stepop.eval.open(runs[name].path).outputs for name in ("sr", "sr_gan"))
    rows = {"given": (before, "lq"), "bicubic": (before, "bicubic"), "sr.yaml": (before, "gen"),
            "sr_gan.yaml": (after, "gen"), "truth": (before, "hq")}
    rows = [(name, array(*which, some)) for name, which in rows.items()]
    yield shown("sr", pictures.rows(rows, 96), "Drawn people whom the networks never saw, 32x32 made 64x64")


def draw_toy(runs):
    losses = {"L1": "loss_pix", "generator": "loss_gan_g", "discriminator": "loss_gan_d"}
    yield curves("toy_srgan", "The losses; the discriminator joins in after four steps", "loss",
                 {name: (runs["toy_srgan"], "train/train_op/" + key) for name, key in losses.items()})


def draw_pix2pix(runs):
    some = slice(0, 7)
    basic, extended = (stepop.eval.open(runs[name].path).outputs for name in ("pix2pix", "pix2pix_extended"))
    rows = [("label map", array(basic, "input", some)), ("small.yaml", array(basic, "fake", some)),
            ("extended.yaml", array(extended, "fake", some)), ("truth", array(basic, "target", some))]
    yield shown("pix2pix", pictures.rows(rows, 80), "Buildings that the networks never saw")
    steps = progress(runs["pix2pix"], "validation/log_op/input_fake_target", 6)
    yield shown("pix2pix_steps", pictures.strip(steps, 2, (64, 0, 128, 128)), "Held-out buildings, as it learns")


def draw_segmentation(runs):
    images = runs["segmentation"].images
    sheets = {"building": "input", "classes": "target", "prediction": "prediction"}
    sheets = [(label, images["validation/log_op/" + key][-1].path) for label, key in sheets.items()]
    yield shown("segmentation", pictures.strip(sheets, 1.5), "Held-out buildings, a colour for each class")


def draw_vunet(runs):
    configs = [TREE / "configs" / "vunet" / f"{name}.yaml" for name in ("base", "small", "transfer")]
    e = stepop.evaluate(runs["vunet"], config=configs, name="transfer", quiet=True)
    yield shown("vunet", pictures.strip([("", next(e.path.parent.glob("matrix/*.png")))]),
                "Each row is one person, each column one pose; the network saw none of them before")
    steps = progress(runs["vunet"], "validation/transfer_op/transfer", 3)
    yield shown("vunet_steps", pictures.strip(steps, 0.75), "Six of them in six poses, as it learns")


def draw_points(runs):
    ((name, run),) = runs.items()
    outputs = stepop.eval.open(run.path).outputs
    truth, said = array(outputs, "y"), array(outputs, "prediction")
    points = {key: (truth[:, i], said[:, i]) for i, key in enumerate(["price", "rent"] if name == "table" else ["y"])}
    yield shown(name, pictures.chart(points, "truth", "prediction", points=True), "Held-out examples")


def draw_sheets(key, caption, first="", count=5, scale=1.0):
    def draw(runs):
        ((name, run),) = runs.items()
        sheets = [("given", run.images[first][-1].path)] if first else []
        yield shown(name, pictures.strip(sheets + progress(run, key, count), scale), caption)
    return draw


def draw_text(runs):
    run = runs["language_model"]
    yield curves("language_model", "The loss of the next character", "loss",
                 {part: (run, f"{part}/log_op/loss") for part in ("train", "validation")})
    sample = max((run.path / "train").glob("**/sample_*.txt"))
    yield f"What it writes at the end:\n\n```text\n{sample.read_text(errors='replace').strip()}\n```"


ACCURACY = {"accuracy": "validation/eval_op/accuracy/accuracy", "loss": "validation/eval_op/loss"}
LOSS = {"loss": "validation/eval_op/loss"}
R2 = {"R2": "validation/eval_op/regression/r2"}
SR = {"PSNR [dB]": "validation/eval_op/psnr", "bicubic's": "validation/eval_op/bicubic_psnr"}
PAIRS = {"PSNR [dB]": "validation/eval_op/psnr", "SSIM": "validation/eval_op/ssim"}
PEOPLE = {"PSNR [dB]": "validation/eval_op/metrics/psnr", "appearance as it is": "validation/eval_op/copy/psnr"}
IOU = {"mean IoU": "validation/eval_op/iou/MeanIoU", **ACCURACY}
FACADES = ["pix2pix/base.yaml", "pix2pix/small.yaml"]

ENTRIES = [
    Entry("digits", "Handwritten digits", "LeNet learns 1,442 digits of 8x8 pixels. `small.yaml` is a smaller network; "
          "`digits_augmented.yaml` turns, moves and mixes the digits; `digits_extras.yaml` trains by Muon in bfloat16 and "
          "measures more. `mnist.yaml` is the same for the files of MNIST, "
          "which are not in the tree, so it is not trained here.",
          [Training("digits", ["digits.yaml"], ACCURACY), Training("small", ["digits.yaml", "small.yaml"], ACCURACY),
           Training("augmented", ["digits_augmented.yaml"], ACCURACY),
           Training("extras", ["digits.yaml", "digits_extras.yaml"], ACCURACY)], draw_digits),
    Entry("flow", "Digits by rectified flow", "A small diffusion transformer makes digits of the class that it is "
          "asked for.", [Training("flow", ["trainer/flow_digits.yaml"], LOSS)], draw_flow),
    Entry("diffusion", "Digits by diffusion", "DDPM, described in YAML as in DL-Art-School.",
          [Training("diffusion", ["extensible/diffusion.yaml"], {"loss": "train/train_op/loss_mse"})], draw_diffusion),
    Entry("vae", "An autoencoder against a discriminator", "An autoencoder of digits. The discriminator joins in after "
          "1,000 steps.", [Training("vae", ["trainer/adversarial_vae.yaml"], {
              "reconstruction": "validation/eval_op/reconstruction", "KL": "validation/eval_op/kl"})], draw_vae),
    Entry("sr", "Super-resolution", "RRDBNet makes drawn people twice as large. `sr_gan.yaml` trains it further "
          "against a discriminator: 2,000 steps in the config, 300 here.",
          [Training("sr", ["extensible/sr.yaml"], SR),
           Training("sr_gan", ["extensible/sr_gan.yaml"], SR, {"num_steps": 300}, weights_of="sr")], draw_sr),
    Entry("toy_srgan", "A toy GAN", "Steps, injectors and losses of a whole GAN in one file, on noise.",
          [Training("toy_srgan", ["extensible/toy_srgan.yaml"], {"L1": "train/train_op/loss_pix"})], draw_toy),
    Entry("pix2pix", "Label maps become buildings", "Pix2pix on facades that are drawn as they are needed. `base.yaml` "
          "alone trains the photographs of 256x256, which are not in the tree.",
          [Training("pix2pix", FACADES, PAIRS),
           Training("pix2pix_extended", [*FACADES, "pix2pix/extended.yaml"], PAIRS)], draw_pix2pix),
    Entry("segmentation", "Classes of pixels", "A small U-Net finds the twelve classes of the facades in their pictures: "
          "[the page](../iterators/SEGMENTATION.md) for your own masks.",
          [Training("segmentation", ["segmentation.yaml"], IOU)], draw_segmentation),
    Entry("vunet", "People in other poses", "VUNet draws a person in the pose of one picture with the appearance of "
          "another: 15,000 steps in `small.yaml`, 10,000 here. "
          "`transfer.yaml` draws the matrix, and `base.yaml` alone is the paper's size, for your own photographs: "
          "[its page](vunet/README.md).",
          [Training("vunet", ["vunet/base.yaml", "vunet/small.yaml"], PEOPLE,
                    {"num_steps": 10000, "optimizer/lr/steps": 10000})], draw_vunet),
    Entry("classifier", "Template: classifier", "Points on the three arms of a spiral.",
          [Training("classifier", [], ACCURACY, template=True)],
          lambda runs: [draw_confusion(runs["classifier"], "classifier", "600 held-out examples")]),
    Entry("regression", "Template: regression", "sin(3 x) + z², from noisy examples.",
          [Training("regression", [], R2, template=True)], draw_points),
    Entry("table", "Template: table", "Prices and rents of houses, from a CSV file with gaps.",
          [Training("table", [], R2, template=True)], draw_points),
    Entry("autoencoder", "Template: autoencoder", "A small network takes noise away.", [Training("autoencoder", [], {
        "PSNR [dB]": "validation/eval_op/image_metrics/psnr"}, template=True)],
          draw_sheets("validation/log_op/output", "Held-out pictures, as it learns", "validation/log_op/noisy", 3)),
    Entry("gan", "Template: GAN", "Discs from noise.", [Training("gan", [], {
        "generator's loss": "train/train_op/generator/loss"}, template=True)],
          draw_sheets("train/log_op/sample", "Samples, as it learns", scale=2)),
    Entry("loss_model", "Template: a model that returns its loss", "The iterator `Trainer` does the rest.",
          [Training("loss_model", [], LOSS, template=True)],
          draw_sheets("train/sample_op/discs/reconstructions", "Held-out pictures, and what is made of them", count=1)),
    Entry("language_model", "Template: language model", "A small transformer reads Shakespeare letter by letter.",
          [Training("language_model", [], LOSS, template=True)], draw_text),
]


def commands_of(entry):
    return [line for training in entry.trainings for line in training.commands()]


def train(entry):
    """The runs by name, and what results.json has of them."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=TREE, capture_output=True, text=True)
    runs, said = {}, []
    for training in entry.trainings:
        others, start = Others(), time.monotonic()
        run = runs[training.name] = training.run(runs)
        seconds = time.monotonic() - start
        metrics = {name: values(run, metric)[1][-1] for name, metric in training.metrics.items()}
        said.append({"name": training.name, "run": run.name, "steps": run.step, "seconds": round(seconds, 1),
                     "busy": others.are_busy(), "metrics": metrics})
        print(f"{training.name}: {seconds:.0f} s", flush=True)
    return runs, {"commands": commands_of(entry), "trainings": said, "date": str(datetime.date.today()),
                  "commit": commit.stdout.strip()}


def section(entry, result):
    names = list(result["trainings"][0]["metrics"])
    lines = [f"## {entry.title}", "", entry.text, "", "```", *result["commands"], "```", "", result["body"], "",
             "| " + " | ".join(["training", "steps", "time", *names]) + " |", "|---" * (3 + len(names)) + "|"]
    for one in result["trainings"]:
        numbers = [f"{value:.4g}" for value in one["metrics"].values()]
        time_ = f"{one['seconds']:,.0f} s" + (", busy" if one["busy"] else "")
        lines.append("| " + " | ".join([one["name"], f"{one['steps']:,}", time_, *numbers]) + " |")
    return [*lines, "", f"{result['date']}, commit {result['commit']}.", ""]


def write_page(results):
    lines = ["# Gallery", "", f"What the configs of the tree make. `make gallery` trained them one after another on "
             f"{os.cpu_count()} cores, drew the pictures and wrote this page; `make gallery ONLY=digits` redoes an "
             "entry. A time is that of a whole training with its evaluations; *busy*: other work took cores from it.",
             ""]
    for entry in ENTRIES:
        lines += section(entry, results[entry.name]) if entry.name in results else []
    (HERE.parent / "GALLERY.md").write_text("\n".join(lines))


def read_results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--draw", action="store_true")
    wanted = parser.parse_args()
    known = [entry.name for entry in ENTRIES]
    unknown = [name for name in wanted.names if name not in known]
    if unknown:
        parser.error(f"no entry {unknown[0]!r}; there are {', '.join(known)}")
    if wanted.fresh:
        RESULTS.unlink(missing_ok=True)
    results = read_results()
    for entry in ENTRIES:
        result = results.get(entry.name)
        if wanted.draw and result and entry.name in (wanted.names or known):
            runs = {one["name"]: stepop.Run(LOGS / one["run"]) for one in result["trainings"]}
        elif entry.name in wanted.names or not (wanted.names or result and result["commands"] == commands_of(entry)):
            runs, result = train(entry)
        else:
            continue
        result = {**result, "body": "\n\n".join(entry.draw(runs))}
        results = {**read_results(), entry.name: result}  # another call may work on other entries
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page(results)
    write_page(results)


if __name__ == "__main__":
    main()
