"""Makes albumentations.safetensors: pictures as albumentations changes them.
    python tests/data/augmentations/make_albumentations.py
albumentations 2.0.8 and opencv-python-headless 5.0.0 made the stored values. All are uint8
[H, W, 3]; `<method>` is the `image` in grey, `webp_<quality>` the image through cv2's WebP. cv2's
principal component may have the other sign, which is then turned back: its grey is inverted.
"""

import pathlib

import cv2
import numpy as np
import torch
from albumentations.augmentations.pixel import functional
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent
SIZE = 48


def picture(seed):
    """Smooth colours and a little noise."""
    random = np.random.default_rng(seed)
    small = random.uniform(0, 255, (6, 6, 3)).astype(np.float32)
    image = cv2.resize(small, (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)
    return (image + random.normal(0, 4, image.shape)).clip(0, 255).astype(np.uint8)


def direction_counts_up(image):
    _, vectors, _ = cv2.PCACompute2(image.reshape(-1, 3).astype(np.float64), mean=None,
                                    maxComponents=1)
    return vectors[0][np.abs(vectors[0]).argmax()] > 0


def main():
    tensors = {}
    for seed in range(4):
        image = picture(seed)
        tensors[f"{seed}/image"] = image
        for method in ("weighted_average", "average", "desaturation", "max", "from_lab", "pca"):
            tensors[f"{seed}/{method}"] = functional.to_gray(image, 3, method)
        if not direction_counts_up(image):
            tensors[f"{seed}/pca"] = 255 - tensors[f"{seed}/pca"]
        for quality in (5, 50, 95):
            _, file = cv2.imencode(".webp", cv2.cvtColor(image, cv2.COLOR_RGB2BGR),
                                   (cv2.IMWRITE_WEBP_QUALITY, quality))
            tensors[f"{seed}/webp_{quality}"] = cv2.cvtColor(
                cv2.imdecode(file, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    save_file({name: torch.from_numpy(np.ascontiguousarray(each))
               for name, each in tensors.items()}, FOLDER / "albumentations.safetensors")


if __name__ == "__main__":
    main()
