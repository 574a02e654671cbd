"""Trains three configs in three precisions and draws their curves: runtime/train/optim/precision.png.

    .venv/bin/python3 tests/bench/precision_curves.py build/stepop runtime/train/optim/precision.png
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

CONFIGS = {  # config: (number, more words)
    "digits.yaml": ("train/log_op/loss", []),
    "extensible/toy_srgan.yaml": ("train/train_op/loss_pix", ["--num_steps", "400"]),
    "trainer/adversarial_vae.yaml": ("train/train_op/loss", ["--num_steps", "300"]),
}
PRECISIONS = {"float32": (40, 40, 40), "bfloat16": (220, 120, 20), "float16": (30, 110, 200)}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 420, 300, 56, 28, 24


def curve(program, config, words, precision, key):
    """The logged values of one training: [(step, value)]."""
    with tempfile.TemporaryDirectory() as logs:
        subprocess.run([program, "-n", "p", "-b", f"configs/{config}", "-t", "--precision", precision, "--log_freq", "10",
                        "--logs", logs, *words], check=True, stdout=subprocess.DEVNULL)
        lines = next(Path(logs).glob("*/train/metrics.jsonl")).read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["step"], row[key]) for row in rows if key in row]


def draw_panel(picture, left, title, curves):
    """Curves over steps; the axis of values is logarithmic."""
    import math

    values = [math.log10(max(v, 1e-6)) for points in curves.values() for _, v in points]
    low, high = min(values), max(values)
    last = max(step for points in curves.values() for step, _ in points)
    x = lambda step: left + LEFT + (WIDTH - LEFT - 12) * step / last
    y = lambda value: TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(max(value, 1e-6))) / (high - low)
    font = ImageFont.load_default(12)
    picture.rectangle([x(0), TOP, x(last), HEIGHT - BOTTOM], outline=(190, 190, 190))
    picture.text((x(0), 6), title, (0, 0, 0), font)
    for value in (10**low, 10 ** ((low + high) / 2), 10**high):
        picture.text((left + 4, y(value) - 7), f"{value:.3g}", (90, 90, 90), font)
    picture.text((x(last) - 60, HEIGHT - 20), f"{last} steps", (90, 90, 90), font)
    for precision, points in curves.items():
        picture.line([(x(step), y(value)) for step, value in points], PRECISIONS[precision], 2)


def main(program, path):
    image = Image.new("RGB", (WIDTH * len(CONFIGS), HEIGHT + 24), "white")
    picture = ImageDraw.Draw(image)
    for i, (config, (key, words)) in enumerate(CONFIGS.items()):
        curves = {p: curve(program, config, words, p, key) for p in PRECISIONS}
        draw_panel(picture, i * WIDTH, f"{config}: {key}", curves)
        for precision, points in curves.items():
            print(config, precision, f"{len(points)} logs, last {points[-1][1]:.5g}")
    for i, (precision, colour) in enumerate(PRECISIONS.items()):
        picture.text((LEFT + 90 * i, HEIGHT + 4), precision, colour, ImageFont.load_default(13))
    image.save(path)


main(*sys.argv[1:])
