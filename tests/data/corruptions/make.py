"""Makes what tests/runtime/data/datasets/pairs/corrupted_images_test.cpp compares with: what DL-Art-School's own
ImageCorruptor and ImageFolderDataset make of a picture.

    make.py CODES    CODES is the folder codes/ of neonbjb/DL-Art-School at f31a333

It needs torch, kornia 0.6.8, opencv-python-headless, pillow and safetensors, and writes values.safetensors beside itself.
Random numbers are those of stepop's generator (SplitMix64), in the order in which stepop draws them.
"""

import json
import math
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "extensible"))
import dl_art_school  # noqa: E402

dl_art_school.Stubs.NAMES = dl_art_school.Stubs.NAMES - {"kornia", "cv2"} | {"orjson", "munch", "torchaudio"}
dl_art_school.prepare(sys.argv[1])
import cv2  # noqa: E402
import kornia  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from data.images import image_corruptor, image_folder_dataset  # noqa: E402

MASK = 2**64 - 1


class Draws:
    """runtime/core/base/random.h"""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self):
        return (self.bits() >> 11) * 2.0**-53

    def below(self, n):
        return self.bits() * n >> 64


class Jitter:
    """kornia's ColorJitter with numbers that stepop draws."""

    draws = None

    def __init__(self, *strengths):
        self.strengths = strengths

    def __call__(self, image):
        low = [1 - self.strengths[0]] * 3 + [-self.strengths[3]]
        high = [1 + self.strengths[0]] * 3 + [self.strengths[3]]
        factors = [a + (b - a) * self.draws.uniform() for a, b in zip(low, high)]
        order = [0, 1, 2, 3]
        for i in (3, 2, 1):
            j = self.draws.below(i + 1)
            order[i], order[j] = order[j], order[i]
        names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
        params = {name: torch.tensor([factor]) for name, factor in zip(names, factors)}
        jitter = kornia.augmentation.ColorJitter(*self.strengths)
        params = {**params, "order": torch.tensor(order), "batch_prob": torch.tensor([1.0])}
        return jitter.apply_transform(image, params, {}, None)


image_corruptor.ColorJitter = Jitter


def draw_from(seed):
    draws = Draws(seed)
    Jitter.draws = draws
    random.randint = lambda low, high: low + draws.below(high - low + 1)
    random.choices = lambda names, k: [names[draws.below(len(names))] for _ in range(k)]
    random.random = lambda: 0.0 if draws.below(2) == 1 else 0.9  # mirrored or not
    return draws


def chw(image):
    return torch.from_numpy(np.ascontiguousarray(np.transpose(image, (2, 0, 1)))).float()


tensors, cases = {}, []
rng = np.random.default_rng(3)
y, x = np.mgrid[0:61, 0:44]
picture = np.stack([127 + 90 * np.sin(x / (3 + c) + c) * np.cos(y / (5 - c)) for c in range(3)], -1)
picture = (picture + rng.normal(0, 12, picture.shape)).clip(0, 255).astype(np.uint8)
tensors["picture"] = chw(picture).to(torch.uint8)

# Single corruptions of a part of it.
part = picture[:16, :20].astype(np.float32) / 255
tensors["part"] = chw(part)
NAMES = ["color_quantization", "color_jitter", "gaussian_blur", "lq_resampling", "lq_resampling4x", "jpeg", "jpeg-low",
         "jpeg-medium", "jpeg-broad", "jpeg-normal", "saturation", "greyscale", "none"]
for name in NAMES:
    for strength in (0.05, 0.5, 0.95):
        for seed in range(6 if "resampling" in name else 1):
            draw_from(seed)
            corruptor = image_corruptor.ImageCorruptor(dl_art_school.options({"corruption_blur_scale": 1.5}))
            made, undo = corruptor.apply_corruption(part.copy(), name, strength, [name])
            made = undo(made) if undo else made
            key = f"corrupted/{name}/{strength}/{seed}"
            tensors[key] = chw(made)
            cases.append({"key": key, "name": name, "strength": strength, "seed": seed})

# The whole dataset.
DATASETS = [
    {"target_size": 32, "scale": 2, "force_multiple": 4},
    {"scale": 2, "force_multiple": 3, "force_square": False, "center_crop_hq_sz": 43},
    {"target_size": 32, "scale": 2, "fixed_corruptions": ["jpeg-broad", "gaussian_blur"],
     "random_corruptions": ["none", "saturation", "greyscale"], "num_corrupts_per_image": 2},
    {"target_size": 64, "scale": 4, "fixed_corruptions": ["lq_resampling", "color_jitter"], "cosine_bias": False,
     "corrupt_before_downsize": True, "corrupt_before_downsize_factor": 2, "corruption_blur_scale": 2,
     "all_image_color_jitter": 0.1, "disable_flip": True},
]
with tempfile.TemporaryDirectory() as folder:
    cv2.imwrite(folder + "/a.png", picture[:, :, ::-1])
    for i, given in enumerate(DATASETS):
        seed = 20 + i
        options = dl_art_school.options({"paths": folder, "rgb_n1_to_1": True, **given})
        dataset = image_folder_dataset.ImageFolderDataset(options)
        draws = draw_from(seed)
        dataset.corruptor.rand = type("Rand", (), {"random": staticmethod(draws.uniform)})
        example = dataset[0]
        for key in ("hq", "lq", "corruption_entropy"):
            tensors[f"dataset/{i}/{key}"] = example[key].float().contiguous()
        cases.append({"dataset": i, "seed": seed, "options": given})

save_file(tensors, HERE / "values.safetensors", metadata={"cases": json.dumps(cases)})
print(len(cases), "cases,", math.ceil((HERE / "values.safetensors").stat().st_size / 1000), "kB")
